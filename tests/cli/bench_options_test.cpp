// What `miniqat bench` measures by choice: kernels of one's own, plugins, widths, threads; its plot.

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "core/text/json.h"
#include "tests/cli/program.h"
#include "tests/source_dir.h"

namespace miniqat::testing::bench_options_test {
namespace {

using Json = nlohmann::json;

class BenchOptionsTest : public ProgramTest {
 protected:
  Outcome bench(const Arguments& more) const { return started("bench --quick" + more, place_.path()); }
  /// Compiles C into a shared library; returns whether that went well.
  bool compile(const std::string& source, const std::string& library, const std::string& flags = "") const {
    const std::string root = source_dir().string();
    const std::string command = std::string(MINIQAT_CXX_COMPILER) + " -x c -std=c99 -pedantic -Wall -Wextra -Werror " +
                                "-O2 -ffp-contract=off -shared -fPIC " + flags + " -I " + root + "/bench/kernels '" +
                                source + "' -lm -o '" + (path(library)).string() + "'";
    return std::system(command.c_str()) == 0;
  }
  bool compile_text(const std::string& text, const std::string& library) const {
    return compile(place_.write("plugin.c", "#include \"fake_quant_plugin.h\"\n" + text).string(), library);
  }
};

TEST_F(BenchOptionsTest, KernelsBitsChannelsThreadsAndAPlotAreChosen) {
  // What is named twice is measured once.
  const Outcome outcome = bench(
      "--kernel forward,backward,plain_loop,forward --bits 2,16,2 --per-channel --channels 33 --elements "
      "1000,4000,1000 --threads 1,2,1 --plot p.svg --out own.json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json result = Json::parse(bytes_of(path("own.json")));
  EXPECT_EQ(result["thread_counts"], (Json{1, 2}));
  std::multiset<std::string> rows;
  for (const Json& row : result["kernels"])
    if (row["kernel"] == "forward") {
      EXPECT_EQ(row["channels"], 33);
      EXPECT_EQ(row.contains("of_miniqat"), row["by"] == "plain_loop");
      if (row["elements"] == 1000)
        rows.insert(row["by"].get<std::string>() + std::to_string(row["bits"].get<int>()) + "/" +
                    std::to_string(row["threads"].get<int>()));
    } else {
      EXPECT_TRUE(row["kernel"] == "memcpy" || row["kernel"] == "read" || row["kernel"] == "backward") << row;
    }
  EXPECT_EQ(rows, (std::multiset<std::string>{"miniqat2/1", "miniqat16/1", "plain_loop2/1", "plain_loop16/1",
                                              "miniqat2/2", "miniqat16/2", "plain_loop2/2", "plain_loop16/2"}));
  expect_text(outcome.err, {"no row of backward by plain_loop"});
  expect_text(outcome.out, {" ns/element ", " 95% of median ", "plain_loop beside miniqat: faster in "});
  const std::string svg = bytes_of(path("p.svg"));
  expect_text(svg, {"<svg", "per channel (33), 2 bits", ">memcpy<", "</svg>"});
  const Outcome compared = expect_success(program("bench --compare own.json own.json"));
  expect_text(compared.out, {"faster in 0, slower in 0"});
  EXPECT_EQ(compared.out.find("differ:"), std::string::npos) << compared.out;
}

TEST_F(BenchOptionsTest, HelpListsAllCases) {
  // The program has kernels that this test program has not.
  const Outcome help = expect_success(started("bench --help"));
  expect_text(help.out, {"forward", "forward_in_place", "forward_mask", "observe_forward", "backward",
                         "backward_learned", "memcpy", "plain_loop"});
  expect_text(program("--help").out, {"own, openmp or alone"});
  // One operation a line.
  for (const char* name : {"forward", "backward_learned", "memcpy"})
    expect_text(help.out, {std::string("  ") + name + ": "});
  EXPECT_NE(expect_success(program("completion zsh")).out.find(" forward: y = fake_quantize(x) "), std::string::npos)
      << "one line";
}

TEST_F(BenchOptionsTest, ThePluginOfTheRepositoryIsMeasured) {
  ASSERT_TRUE(compile(source_dir() / "bench/kernels/plain_loop.c", "plain.so"));
  const Json result = Json::parse(bench("--plugin plain.so --threads 2 --per-tensor --elements 1000 --json").out);
  std::set<std::string> done;
  for (const Json& row : result["kernels"]) {
    EXPECT_EQ(row.contains("plugin"), row["by"] == "plain_loop_in_c");
    EXPECT_EQ(row.value("plugin", "plain.so"), "plain.so");
    if (row["by"] == "plain_loop_in_c") done.insert(row["kernel"]);
  }
  EXPECT_EQ(done, (std::set<std::string>{"forward", "forward_in_place", "forward_mask", "observe_forward", "backward",
                                         "backward_learned"}));
}

#if defined(__x86_64__)
TEST_F(BenchOptionsTest, TheIntrinsicsOfThePageAreMeasured) {
  const std::string path = (source_dir() / "bench/kernels/avx2_loop.c").string(), source = bytes_of(path);
  const std::string page = bytes_of(source_dir() / "docs/own-kernel.md");
  const std::size_t begin = source.find("__attribute__"), end = source.find("\n}\n", begin);
  expect_text(page, {"```c\n" + source.substr(begin, end + 3 - begin) + "```"});
  ASSERT_TRUE(compile(path, "avx2.so"));
  const Outcome outcome = bench("--plugin avx2.so --elements 1000 --threads 1 --per-tensor");
  const bool is_refused = outcome.err.find("this processor cannot run it") != std::string::npos;
  EXPECT_TRUE(outcome.status == 0 || is_refused) << outcome.err;
  EXPECT_TRUE(outcome.out.find(" avx2_loop_in_c\n") != std::string::npos || is_refused) << outcome.out;
}
#endif

TEST_F(BenchOptionsTest, WrongPluginsAreRefused) {
  const std::string past =
      "static void forward(const float* x, float* y, int64_t n, const fake_quant_grid* grids, int64_t channels) {\n"
      "  (void)x; (void)grids; (void)channels; y[n] = 1;\n}\n"
      "static const fake_quant_kernel kernels[] = {{.name = \"past\", .forward = forward}};\n"
      "const fake_quant_plugin* miniqat_fake_quant_plugin(void) {\n"
      "  static const fake_quant_plugin plugin = {VERSION, 1, kernels};\n  return &plugin;\n}\n";
  ASSERT_TRUE(compile_text("#define VERSION 1\n" + past, "past.so"));
  const Outcome outcome = bench("--plugin past.so");
  EXPECT_EQ(outcome.status, 1);
  expect_text(outcome.err, {"kernel past: forward, 2 bits, 1 channel, 0 elements: "});
  ASSERT_TRUE(compile_text("#define VERSION 7\n" + past, "version.so"));
  expect_error(program("bench --plugin version.so"), 2, {"version.so", "version 7", "version 1"});
  ASSERT_TRUE(compile_text("int nothing;\n", "nothing.so"));
  expect_error(program("bench --plugin nothing.so"), 2, {"nothing.so", "miniqat_fake_quant_plugin"});
}

/// A kernel in C that is right, with a line behind its loop.
std::string kernel_with(const std::string& line) {
  return "#include <math.h>\n#include <signal.h>\nstatic int calls;\n"
         "static void forward(const float* x, float* y, int64_t n, const fake_quant_grid* grids, int64_t channels) {\n"
         "  for (int64_t i = 0; i < n; ++i) {\n"
         "    const fake_quant_grid* grid = &grids[i % channels];\n"
         "    const float raised = x[i] < grid->nudged_min ? grid->nudged_min : x[i];\n"
         "    const float clamped = raised > grid->nudged_max ? grid->nudged_max : raised;\n"
         "    y[i] = (grid->quant_min + floorf((clamped - grid->nudged_min) / grid->scale + 0.5f) - grid->zero_point) "
         "*\n"
         "           grid->scale;\n  }\n"
         "  (void)calls;\n  " +
         line +
         "\n}\n"
         "static const fake_quant_kernel kernels[] = {{.name = \"late\", .forward = forward}};\n"
         "const fake_quant_plugin* miniqat_fake_quant_plugin(void) {\n"
         "  static const fake_quant_plugin plugin = {1, 1, kernels};\n  return &plugin;\n}\n";
}

TEST_F(BenchOptionsTest, KernelsOfOneNameStandBesideEachOther) {
  std::string text = kernel_with("");
  text.replace(text.find("\"late\""), 6, "\"plain_loop\"");
  ASSERT_TRUE(compile_text(text, "new.so") && compile_text(kernel_with(""), "a.so"));
  std::filesystem::create_directory(path("old"));
  for (const char* copy : {"b.so", "old/a.so"}) std::filesystem::copy(path("a.so"), path(copy));
  // The names that there are stand in an error.
  const auto expect_names = [&](const std::string& plugins, const std::vector<std::string>& names) {
    expect_error(bench({"--plugin", plugins, "--kernel", "none"}), 2, names);
  };
  expect_names("new.so", {"plain_loop", "plain_loop@new"});
  expect_names("a.so,b.so", {"late@a", "late@b"});
  expect_names("a.so,old/a.so", {"late@a.so", "late@old/a.so"});
  const Outcome outcome =
      bench("--plugin new.so,a.so,b.so --kernel plain_loop,late@b --threads 1 --per-channel --elements 1000 --json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json result = Json::parse(outcome.out);
  std::set<std::string> by;
  for (const Json& row : result["kernels"])
    if (row["kernel"] == "forward") by.insert(row["by"]);
  EXPECT_EQ(by, (std::set<std::string>{"miniqat", "plain_loop", "plain_loop@new", "late@b"}));
  EXPECT_EQ(outcome.err.find("no row of"), std::string::npos) << "no operation was named: " << outcome.err;
}

// How crashes while it is timed and damage beside a large tensor are named: tests/bench/kernel_check_test.cpp.
TEST_F(BenchOptionsTest, AKernelThatCrashesLaterIsNamedAndWhatWasMeasuredBeforeIsKept) {
  ASSERT_TRUE(compile_text(kernel_with("if (n > 90000) raise(SIGSEGV);"), "late.so"));
  const Outcome outcome = bench("--plugin late.so --elements 1000,100000 --threads 1 --per-tensor --out own.json");
  EXPECT_NE(outcome.status, 0);
  expect_text(outcome.err, {"kernel late: forward per tensor, 8 bits, 100000 elements, 1 thread: crashed\n"});
  const Json result = Json::parse(bytes_of(path("own.json")));
  EXPECT_EQ(result["unfinished"], true);
  EXPECT_EQ(result["kernels"].back()["elements"], 1000);
  expect_text(expect_success(program("bench --compare own.json own.json")).out, {", unfinished\n"});
}

TEST_F(BenchOptionsTest, AKernelMustStayRightWhileItIsTimed) {
  ASSERT_TRUE(compile_text(kernel_with("if (n == 1000 && ++calls > 3) y[7] += 1;"), "late.so"));
  const Outcome outcome = bench("--plugin late.so --elements 1000 --threads 1 --per-tensor --kernel forward");
  EXPECT_EQ(outcome.status, 1);
  expect_text(outcome.err, {"kernel late: forward per tensor", " rounds: element 7 of 1000: expected "});
  EXPECT_EQ(outcome.out.find("late\n"), std::string::npos) << outcome.out;
}

TEST_F(BenchOptionsTest, CrashesOutsideOfTheCheckAreNamed) {
  const auto expect_fault = [&](const std::string& text, const std::string& fault) {
    ASSERT_TRUE(compile_text("#include <stdlib.h>\n" + text, "late.so"));
    const Outcome outcome = bench("--plugin late.so --elements 200000 --threads 2");
    EXPECT_NE(outcome.status, 0);
    expect_text(outcome.err, {fault});
  };
  std::string text = kernel_with("");
  text.insert(text.rfind("  static const fake_quant_plugin"), "  abort();\n");
  expect_fault(text, "late.so: loading it and calling miniqat_fake_quant_plugin: ended by signal 6");
  text = kernel_with("");
  text.insert(text.find("static const fake_quant_kernel"), "static int says_no(void) { abort(); }\n");
  text.insert(text.find(".forward ="), ".supported = says_no, ");
  expect_fault(text, "kernel late: supported: ended by signal 6");
  // Out of the stack, also in a worker.
  expect_fault(
      "static int deep(unsigned depth) {\n  volatile char room[1 << 10];\n  room[0] = 1;\n"
      "  return depth > 0 ? deep(depth + 1) + room[0] : 0;\n}\n" +
          kernel_with("if (n > 90000) calls += deep(1);"),
      "kernel late: forward per tensor, 8 bits, 200000 elements, 2 threads: crashed\n");
}

TEST_F(BenchOptionsTest, AMaskThatNobodyReadsIsTold) {
  const std::string mask =
      "static void with_mask(const float* x, float* y, int64_t n, const fake_quant_grid* grids, int64_t channels, "
      "void* "
      "mask) {\n  (void)mask;\n  forward(x, y, n, grids, channels);\n}\n";
  std::string text = kernel_with("");
  text.insert(text.find("static const fake_quant_kernel"), mask);
  const std::string name = ".forward = forward";
  text.replace(text.find(name), name.size(), ".forward_mask = with_mask");
  ASSERT_TRUE(compile_text(text, "late.so"));
  const Outcome outcome = bench("--plugin late.so --elements 1000 --threads 1 --per-tensor");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  expect_text(outcome.err, {"the mask of forward_mask by late is not checked"});
}

}  // namespace
}  // namespace miniqat::testing::bench_options_test
