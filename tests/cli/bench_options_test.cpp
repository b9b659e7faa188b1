// What `miniqat bench` measures by choice: kernels of one's own, plugins, widths, threads; its plot and comparisons.

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>

#include "core/text/json.h"
#include "tests/cli/program.h"

namespace miniqat::testing::bench_options_test {
namespace {

using Json = nlohmann::json;

class BenchOptionsTest : public ProgramTest {
 protected:
  Outcome bench(const Arguments& more) const { return program("bench --quick" + more); }
  Json measured(Arguments more) const {
    more.insert(more.end(), {"--json", "--elements", "1000"});
    const Outcome outcome = bench(more);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return Json::parse(outcome.out);
  }
  /// Compiles C into a shared library; returns whether that went well.
  bool compile(const std::string& source, const std::string& library, const std::string& flags = "") const {
    const std::string root = MINIQAT_SOURCE_DIR;
    const std::string command = std::string(MINIQAT_CXX_COMPILER) + " -x c -std=c99 -pedantic -Wall -Wextra -Werror " +
                                "-O2 -ffp-contract=off -shared -fPIC " + flags + " -I " + root + "/bench/kernels '" +
                                source + "' -lm -o '" + (path(library)).string() + "'";
    return std::system(command.c_str()) == 0;
  }
  bool compile_text(const std::string& text, const std::string& library) const {
    return compile(place_.write("plugin.c", "#include \"fake_quant_plugin.h\"\n" + text).string(), library);
  }
};

TEST_F(BenchOptionsTest, KernelsBitsChannelsAndThreadsAreChosen) {
  const Json result = measured(
      {"--kernel", "forward,plain_loop", "--bits", "2,16", "--per-channel", "--channels", "33", "--threads", "1,2,1"});
  EXPECT_EQ(result["thread_counts"], (Json{1, 2}));
  std::set<std::string> rows;
  for (const Json& row : result["kernels"])
    if (row["kernel"] == "forward") {
      EXPECT_EQ(row["channels"], 33);
      EXPECT_EQ(row.contains("of_miniqat"), row["by"] == "plain_loop");
      rows.insert(row["by"].get<std::string>() + std::to_string(row["bits"].get<int>()) + "/" +
                  std::to_string(row["threads"].get<int>()));
    } else {
      EXPECT_TRUE(row["kernel"] == "memcpy" || row["kernel"] == "read") << row;
    }
  EXPECT_EQ(rows, (std::set<std::string>{"miniqat2/1", "miniqat16/1", "plain_loop2/1", "plain_loop16/1", "miniqat2/2",
                                         "miniqat16/2", "plain_loop2/2", "plain_loop16/2"}));
}

TEST_F(BenchOptionsTest, RepeatedChoicesAreMeasuredOnce) {
  const Outcome outcome = bench(
      "--kernel forward,plain_loop,forward,plain_loop --bits 8,8 --per-channel --elements 1000,1000 --threads 1,1 "
      "--out own.json");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  // Also memcpy and read.
  EXPECT_EQ(Json::parse(bytes_of(path("own.json")))["kernels"].size(), 4u);
  expect_success(program("bench --compare own.json own.json"));
}

TEST_F(BenchOptionsTest, HelpListsAllCases) {
  const Outcome help = expect_success(miniqat("bench --help"));
  expect_text(help.out, {"forward", "forward_in_place", "forward_mask", "observe_forward", "backward",
                         "backward_learned", "memcpy", "plain_loop"});
  expect_text(miniqat("--help").out, {"own, openmp or alone"});
  // One operation a line.
  for (const char* name : {"forward", "backward_learned", "memcpy"})
    expect_text(help.out, {std::string("  ") + name + ": "});
  EXPECT_NE(expect_success(miniqat("completion zsh")).out.find(" forward: y = fake_quantize(x) "), std::string::npos)
      << "one line";
}

TEST_F(BenchOptionsTest, ThePluginOfTheRepositoryIsMeasured) {
  ASSERT_TRUE(compile(MINIQAT_SOURCE_DIR "/bench/kernels/plain_loop.c", "plain.so"));
  const Json result = measured({"--plugin", "plain.so", "--threads", "2"});
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
  const std::string path = MINIQAT_SOURCE_DIR "/bench/kernels/avx2_loop.c", source = bytes_of(path);
  const std::string page = bytes_of(MINIQAT_SOURCE_DIR "/docs/own-kernel.md");
  const std::size_t begin = source.find("__attribute__"), end = source.find("\n}\n", begin);
  expect_text(page, {"```c\n" + source.substr(begin, end + 3 - begin) + "```"});
  ASSERT_TRUE(compile(path, "avx2.so"));
  const Outcome outcome = bench("--plugin avx2.so --elements 1000 --threads 1");
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
  expect_error(bench("--plugin version.so"), 2, {"version.so", "version 7", "version 1"});
  ASSERT_TRUE(compile_text("int nothing;\n", "nothing.so"));
  expect_error(bench("--plugin nothing.so"), 2, {"nothing.so", "miniqat_fake_quant_plugin"});
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
  const auto kernels = [&](const Arguments& more) {
    const Arguments line = "--threads 1 --per-channel" + more;
    std::set<std::string> by;
    const Json result = measured(line);
    for (const Json& row : result["kernels"])
      if (row["kernel"] == "forward") by.insert(row["by"].get<std::string>());
    return by;
  };
  using Names = std::set<std::string>;
  std::string text = kernel_with("");
  text.replace(text.find("\"late\""), 6, "\"plain_loop\"");
  ASSERT_TRUE(compile_text(text, "new.so"));
  EXPECT_EQ(kernels({"--plugin", "new.so"}), (Names{"miniqat", "plain_loop@new"}));
  EXPECT_EQ(kernels({"--plugin", "new.so", "--kernel", "plain_loop"}),
            (Names{"miniqat", "plain_loop", "plain_loop@new"}));
  ASSERT_TRUE(compile_text(kernel_with(""), "a.so") && compile_text(kernel_with(""), "b.so"));
  std::filesystem::create_directory(path("old"));
  std::filesystem::copy(path("a.so"), path("old/a.so"));
  EXPECT_EQ(kernels({"--plugin", "a.so,b.so"}), (Names{"miniqat", "late@a", "late@b"}));
  EXPECT_EQ(kernels({"--plugin", "a.so,b.so", "--kernel", "late@b"}), (Names{"miniqat", "late@b"}));
  EXPECT_EQ(kernels({"--plugin", "a.so,old/a.so"}), (Names{"miniqat", "late@a.so", "late@old/a.so"}));
}

TEST_F(BenchOptionsTest, AKernelThatCrashesLaterIsNamed) {
  ASSERT_TRUE(compile_text(kernel_with("if (n > 90000 && ++calls > 0) raise(SIGSEGV);"), "late.so"));
  const Outcome outcome = bench("--plugin late.so --elements 100000 --threads 1");
  EXPECT_NE(outcome.status, 0);
  expect_text(outcome.err, {"kernel late: forward per tensor, 8 bits, 100000 elements, 1 thread: crashed\n"});
}

TEST_F(BenchOptionsTest, AKernelMustStayRightWhileItIsTimed) {
  const Arguments line = "--plugin late.so --elements 1000 --threads 1 --kernel forward";
  ASSERT_TRUE(compile_text(kernel_with("if (n == 1000 && ++calls > 3) raise(SIGSEGV);"), "late.so"));
  expect_text(bench(line).err, {"1000 elements, 1 thread, while it was timed: crashed\n"});
  ASSERT_TRUE(compile_text(kernel_with("if (n == 1000 && ++calls > 3) y[7] += 1;"), "late.so"));
  const Outcome outcome = bench(line);
  EXPECT_EQ(outcome.status, 1);
  expect_text(outcome.err, {"kernel late: forward per tensor", " rounds: element 7 of 1000: expected "});
  EXPECT_EQ(outcome.out.find("late\n"), std::string::npos) << outcome.out;
}

TEST_F(BenchOptionsTest, ALargeTensorIsGuarded) {
  const auto expect_fault = [&](const std::string& line, const std::string& elements, const std::string& fault) {
    ASSERT_TRUE(compile_text(kernel_with(line), "late.so"));
    const Outcome outcome = bench({"--plugin", "late.so", "--elements", elements, "--threads", "1"});
    EXPECT_NE(outcome.status, 0);
    expect_text(outcome.err,
                {"kernel late: forward per tensor, 8 bits, " + elements + " elements, 1 thread: " + fault + "\n"});
  };
  // The whole last vector, which ends before the page.
  expect_fault("if (n > 90000) for (int64_t i = n; i % 8 != 0; ++i) y[i] = 0;", "100001",
               "wrote right after the end of the result");
  expect_fault("if (n > 90000) y[n] = 0;", "100000", "wrote right after the end of the result");
  expect_fault("if (n > 90000) y[n - 1] += 0 * x[n + 1];", "100000", "read 4 bytes after the end of x");
  expect_fault("if (n > 90000) y[-1] = 0;", "100000", "wrote 1 byte before the begin of the result");
  expect_fault("if (n > 90000 && x != y) ((float*)x)[7] = 0;", "100000", "x is changed");
}

TEST_F(BenchOptionsTest, WhatWasMeasuredBeforeACrashIsKept) {
  ASSERT_TRUE(compile_text(kernel_with("if (n > 90000) raise(SIGSEGV);"), "late.so"));
  EXPECT_NE(bench("--plugin late.so --elements 1000,100000 --threads 1 --out own.json").status, 0);
  const Json result = Json::parse(bytes_of(path("own.json")));
  EXPECT_EQ(result["unfinished"], true);
  EXPECT_EQ(result["kernels"].back()["elements"], 1000);
  expect_text(expect_success(program("bench --compare own.json own.json")).out, {", unfinished\n"});
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
  expect_fault(kernel_with("volatile char room[1 << 10];\n  room[0] = 1;\n  if (n > 90000) "
                           "forward(x, y + room[0] - 1, n, grids, channels);\n  room[1] = room[0];"),
               "kernel late: forward per tensor, 8 bits, 200000 elements, 2 threads: crashed\n");
}

TEST_F(BenchOptionsTest, ANamedOperationThatAKernelLacksIsTold) {
  const std::string note = "no row of backward by plain_loop";
  const auto told = [&](const std::string& kernels) {
    const Outcome outcome = bench({"--kernel", kernels, "--elements", "1000", "--threads", "1"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.err.find(note) != std::string::npos;
  };
  EXPECT_TRUE(told("forward,backward,plain_loop"));
  EXPECT_FALSE(told("plain_loop"));
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
  const Outcome outcome = bench("--plugin late.so --elements 1000 --threads 1");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  expect_text(outcome.err, {"the mask of forward_mask by late is not checked"});
}

TEST_F(BenchOptionsTest, KernelsOfOneOperationHaveColoursOfTheirOwn) {
  const auto drawn = [&](const std::string& kernels) {
    const Outcome outcome =
        bench({"--kernel", kernels, "--elements", "1000,4000", "--threads", "1", "--plot", "p.svg"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return bytes_of(path("p.svg"));
  };
  expect_text(drawn("forward,plain_loop"), {"class=\"line c3\""});
  const std::string two = drawn("forward,forward_in_place,plain_loop");
  EXPECT_EQ(two.find("class=\"line c4\""), std::string::npos);
}

TEST_F(BenchOptionsTest, APlotIsDrawn) {
  const Outcome outcome = bench("--kernel forward --elements 1000,4000 --threads 1 --plot p.svg");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const std::string svg = bytes_of(path("p.svg"));
  expect_text(svg, {"<svg", "per channel (64), 8 bits", ">memcpy<", "</svg>"});
}

/// A file of `bench` with one case by `kernel`, whose rounds lie around `seconds`.
std::string bench_json(const std::string& kernel, double seconds) {
  Json rounds = Json::array();
  for (int i = 0; i < 9; ++i) rounds.push_back(seconds * (1 + 0.001 * i));
  return Json{{"version", "0.1"},
              {"date", "2026-01-01T00:00:00Z"},
              {"compiler", "c"},
              {"machine", {{"cpu", "m"}, {"instruction_set", "avx2"}}},
              {"kernels",
               {{{"kernel", "forward"},
                 {"by", kernel},
                 {"layout", "per tensor"},
                 {"bits", 8},
                 {"channels", 1},
                 {"elements", 10},
                 {"threads", 1},
                 {"rounds", rounds},
                 {"quiet", true}}}}}
      .dump();
}

TEST_F(BenchOptionsTest, FilesAreCompared) {
  Json with_commit = Json::parse(bench_json("old", 1e-3));
  with_commit["commit"] = "1234abc-dirty";
  with_commit["flags"] = "-O3";
  place_.write("a.json", with_commit.dump());
  place_.write("b.json", bench_json("new", 0.5e-3));
  const Outcome outcome = expect_success(program("bench --compare a.json b.json"));
  expect_text(outcome.out, {"forward, per tensor, 8 bits, 10 elements, 1 thread", "old -> new", "2.000", "B faster",
                            "1 cases: B faster in 1", "A  a.json: 0.1 (1234abc-dirty), 2026-01-01",
                            "B  b.json: 0.1, 2026", "Flags of the compiler differ:\nA  -O3\nB  unknown\n"});
}

TEST_F(BenchOptionsTest, AComparisonIsJsonOrAStatus) {
  place_.write("a.json", bench_json("k", 1e-3));
  place_.write("b.json", bench_json("k", 2e-3));
  const Json json = Json::parse(expect_success(program("bench --compare a.json b.json --json")).out);
  EXPECT_EQ(json["a"]["file"], "a.json");
  ASSERT_EQ(json["cases"].size(), 1u);
  EXPECT_EQ(json["cases"][0]["case"], "forward, per tensor, 8 bits, 10 elements, 1 thread");
  EXPECT_EQ(json["cases"][0]["b_is"], "slower");
  EXPECT_NEAR(json["cases"][0]["speed"], 0.5, 1e-6);
  EXPECT_EQ(json["cases"][0]["kernel"], "forward");
  EXPECT_EQ(json["cases"][0]["layout"], "per tensor");
  for (const auto& [key, value] :
       std::map<std::string, int>{{"bits", 8}, {"channels", 1}, {"elements", 10}, {"threads", 1}})
    EXPECT_EQ(json["cases"][0][key], value) << key;
  EXPECT_EQ(json["a"]["machine"]["cpu"], "m");
  const Outcome slower = program("bench --compare a.json b.json --fail-if-slower");
  EXPECT_EQ(slower.status, 1);
  expect_text(slower.err, {"b.json is slower than a.json in 1 case\n"});
  expect_text(slower.out, {"B slower"});
  expect_success(program("bench --compare b.json a.json --fail-if-slower"));
}

TEST_F(BenchOptionsTest, WhatBenchWroteCanBeCompared) {
  bench("--kernel forward --elements 1000 --threads 1 --out own.json");
  const Outcome outcome = expect_success(program("bench --compare own.json own.json"));
  expect_text(outcome.out, {"faster in 0, slower in 0"});
  EXPECT_EQ(outcome.out.find("differ:"), std::string::npos) << outcome.out;
}

TEST_F(BenchOptionsTest, MalformedFilesAreNamed) {
  place_.write("good.json", bench_json("k", 1));
  const auto refuses = [&](const std::string& text, const std::vector<std::string>& parts) {
    place_.write("bad.json", text);
    expect_error(program("bench --compare good.json bad.json"), 1, parts);
  };
  refuses("{", {"bad.json", "line 1"});
  refuses("[]", {"bad.json", "object"});
  refuses("{}", {"bad.json", "machine"});
  Json json = Json::parse(bench_json("k", 1));
  const auto changed = [&](const char* key, const Json& value) {
    Json copy = json;
    copy["kernels"][0][key] = value;
    return copy.dump();
  };
  refuses(changed("rounds", Json::array()), {"bad.json: kernels[0]", "rounds", "seconds"});
  refuses(changed("rounds", {1, -1}), {"kernels[0]", "rounds"});
  refuses(changed("threads", "two"), {"kernels[0]", "threads", "whole number"});
  refuses(changed("elements", 11), {"no case in common"});
  json["kernels"].push_back(json["kernels"][0]);
  refuses(json.dump(), {"kernels[1]", "twice"});
  json["kernels"][0].erase("rounds");
  refuses(json.dump(), {"kernels[0]", "has no \"rounds\""});
  expect_error(program("bench --compare good.json none.json"), 1, {"none.json"});
}

}  // namespace
}  // namespace miniqat::testing::bench_options_test
