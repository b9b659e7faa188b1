// Random cases on the fast paths, compared with what specifies them; README.md beside this says how to use it.

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "core/error.h"
#include "core/instruction_set.h"
#include "core/random.h"
#include "layers/layers.h"
#include "quantize/quantize.h"
#include "tests/fuzz/cases.h"
#include "tests/fuzz/integer_cases.h"
#include "tests/fuzz/shrink.h"

namespace miniqat::fuzz {
namespace {

using Clock = std::chrono::steady_clock;

struct Arguments {
  std::uint64_t seed = 0;
  std::int64_t cases = 0;
  double seconds = 0;
  std::string stage = "all";
  std::string isa = "all";
  std::string replay;
  std::string out = "differential-findings";
  std::int64_t first = 0;
  int keep_going = 1;
  /// Set for the process that runs cases: where it says which one it is at.
  std::string progress;
};

const std::vector<std::string> kStages = {"ops", "convolutions", "graphs", "integers"};
/// Compilers and foreign runtimes take seconds: one case in so many goes there.
constexpr std::int64_t kExportsEvery = 400;

std::vector<std::string> chosen(const std::string& one, const std::vector<std::string>& all) {
  return one == "all" ? all : std::vector{one};
}

std::uint64_t seed_of(const Arguments& arguments, const std::string& stage, std::int64_t number) {
  return mix(mix(arguments.seed, hash_text(stage)), static_cast<std::uint64_t>(number));
}

GraphCase graph_case(const std::string& stage, std::uint64_t seed) {
  if (stage == "convolutions") return convolution_case(seed);
  if (stage == "ops") return op_case(seed);
  return net_case(seed);
}

/// Seconds, compiling C, shrinking and guarded memory included, and those of one case alone.
constexpr unsigned kLongestCase = 300, kLongestReplay = 60;

/// The case that runs, for whoever picks up the pieces.
void note_progress(const Arguments& arguments, std::int64_t number) {
  static const int file = open(arguments.progress.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (pwrite(file, &number, sizeof number, 0) != sizeof number) fail("cannot write ", arguments.progress);
}

std::string heading(const Arguments& arguments, const std::string& stage, std::int64_t number) {
  return concat("seed ", arguments.seed, ", stage ", stage, ", case ", number, ", ", name_of(instruction_set()));
}

std::string file_name(const Arguments& arguments, const std::string& stage, std::int64_t number) {
  return concat(stage, "-", arguments.seed, "-", number, "-", name_of(instruction_set()));
}

void report(const Arguments& arguments, const std::string& stage, std::int64_t number, const GraphCase& test,
            const Finding& finding, const Fails& fails) {
  std::fprintf(stderr, "%s, %s: %s\n", heading(arguments, stage, number).c_str(), test.text().c_str(),
               finding.text.c_str());
  const GraphCase small = shrink(test, finding, fails);
  std::optional<Finding> again;
  try {
    if (finding.kind != "signal") again = judge(small);
  } catch (const std::exception&) {
  }
  const std::string command = save(small, arguments.out, file_name(arguments, stage, number));
  std::fprintf(stderr, "  shrunk to %s: %s\n  %s\n  miniqat_differential --replay %s\n", small.text().c_str(),
               again ? again->text.c_str() : finding.text.c_str(), command.c_str(),
               (std::filesystem::path(arguments.out) / file_name(arguments, stage, number)).c_str());
}

/// Whether this case is wrong; reported and shrunk then.
bool run_case(const Arguments& arguments, const std::string& stage, std::int64_t number, Counts& counts) {
  const std::uint64_t seed = seed_of(arguments, stage, number);
  if (stage == "integers") {
    std::string wrong;
    try {
      wrong = judge_integers(seed, arguments.out, file_name(arguments, stage, number));
      if (wrong.empty() && number % kExportsEvery == 0) wrong = judge_exports(seed);
    } catch (const std::exception& error) {
      wrong = concat("throws ", error.what());
    }
    if (wrong.empty()) return false;
    std::fprintf(stderr, "%s: %s\n", heading(arguments, stage, number).c_str(), wrong.c_str());
    return true;
  }
  const GraphCase test = graph_case(stage, seed);
  std::optional<Finding> finding;
  try {
    finding = judge(test, &counts);
  } catch (const std::exception& error) {
    finding = Finding{concat("throws ", error.what()), "throws", {}};
  }
  if (!finding) return false;
  report(arguments, stage, number, test, *finding, [&](const GraphCase& smaller) {
    try {
      const std::optional<Finding> found = judge(smaller);
      return found && found->kind == finding->kind;
    } catch (const std::exception& error) {
      return finding->text == concat("throws ", error.what());
    }
  });
  return true;
}

/// In the process that runs cases: those of one stage. Returns how many were wrong.
int run_stage(const Arguments& arguments, const std::string& stage) {
  const auto start = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  Counts counts;
  int wrong = 0;
  std::int64_t number = arguments.first;
  for (; arguments.cases > 0 ? number < arguments.cases : elapsed() < arguments.seconds; ++number) {
    note_progress(arguments, number);
    // Of a kernel that never ends nobody would hear.
    alarm(kLongestCase);
    wrong += run_case(arguments, stage, number, counts) ? 1 : 0;
    if (wrong >= arguments.keep_going) break;
  }
  alarm(0);
  std::printf("%-12s %-8s seed %llu: %lld cases in %.1f s, %d wrong", stage.c_str(), name_of(instruction_set()).data(),
              static_cast<unsigned long long>(arguments.seed), static_cast<long long>(number - arguments.first),
              elapsed(), wrong);
  if (counts.compared > 0)
    std::printf("; %lld steps, %lld numbers, %.3f%% of them hardly bounded", static_cast<long long>(counts.steps),
                static_cast<long long>(counts.compared),
                100.0 * static_cast<double>(counts.vague) / static_cast<double>(counts.compared));
  std::printf("\n");
  std::fflush(stdout);
  // An exit status holds no more.
  return std::min(wrong, 255);
}

/// Runs this program again under an instruction set. Returns its wait status.
int run_again(const std::string& isa, const std::vector<std::string>& words, bool quiet = false) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) fail("cannot fork");
  if (child == 0) {
    setenv("MINIQAT_MAX_ISA", isa.c_str(), 1);
    // Threads that spin while they wait would take the few cores from one another.
    setenv("OMP_WAIT_POLICY", "passive", 0);
    if (quiet) {
      const int null = open("/dev/null", O_WRONLY);
      dup2(null, STDOUT_FILENO);
      dup2(null, STDERR_FILENO);
    }
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execv("/proc/self/exe", arguments.data());
    _exit(127);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) fail("cannot wait for a child");
  return status;
}

/// What killed the process that ran cases is shrunk in processes of its own.
void report_death(const Arguments& arguments, const std::string& isa, const std::string& stage, std::int64_t number,
                  int signal) {
  const std::string what = concat("ended by signal ", signal, signal == SIGALRM ? " (takes for ever)" : "");
  std::fprintf(stderr, "seed %llu, stage %s, case %lld, %s: %s\n", static_cast<unsigned long long>(arguments.seed),
               stage.c_str(), static_cast<long long>(number), isa.c_str(), what.c_str());
  if (stage == "integers") return;
  const std::string trial = concat("trial", getpid());
  const auto path = (std::filesystem::path(arguments.out) / (trial + ".json")).string();
  const Fails dies = [&](const GraphCase& test) {
    save(test, arguments.out, trial);
    const int status = run_again(isa, {"miniqat_differential", "--replay", path}, true);
    return WIFSIGNALED(status) && WTERMSIG(status) == signal;
  };
  report(arguments, stage, number, graph_case(stage, seed_of(arguments, stage, number)), {what, "signal", {}}, dies);
  for (const char* end : {".json", ".feeds.safetensors", ".variables.safetensors"})
    std::filesystem::remove(std::filesystem::path(arguments.out) / (trial + end));
}

/// Runs a stage under an instruction set to its end, over the dead bodies of the processes that try.
int supervise(const Arguments& arguments, const std::string& isa, const std::string& stage, double seconds) {
  const std::string progress =
      (std::filesystem::temp_directory_path() / concat("differential-", getpid(), "-progress")).string();
  const auto start = Clock::now();
  int wrong = 0;
  std::int64_t first = arguments.first;
  for (;;) {
    const double left = seconds - std::chrono::duration<double>(Clock::now() - start).count();
    std::vector<std::string> words = {"miniqat_differential",
                                      "--stage",
                                      stage,
                                      "--seed",
                                      std::to_string(arguments.seed),
                                      "--out",
                                      arguments.out,
                                      "--first",
                                      std::to_string(first),
                                      "--keep-going",
                                      std::to_string(arguments.keep_going - wrong),
                                      "--progress",
                                      progress};
    if (arguments.cases > 0)
      words.insert(words.end(), {"--cases", std::to_string(arguments.cases)});
    else
      words.insert(words.end(), {"--seconds", std::to_string(std::max(left, 0.1))});
    const int status = run_again(isa, words);
    if (WIFEXITED(status)) {
      wrong += WEXITSTATUS(status);
      break;
    }
    std::int64_t number = first;
    const int file = open(progress.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0 || pread(file, &number, sizeof number, 0) != sizeof number) fail("no case was begun");
    close(file);
    report_death(arguments, isa, stage, number, WTERMSIG(status));
    first = number + 1;
    if (++wrong >= arguments.keep_going) break;
  }
  std::filesystem::remove(progress);
  return wrong;
}

int replay(const Arguments& arguments) {
  alarm(kLongestReplay);
  if (arguments.replay.ends_with(".miniqat")) {
    const std::string wrong = replay_integers(arguments.replay);
    std::printf("%s\n", wrong.empty() ? "all is well" : wrong.c_str());
    return wrong.empty() ? 0 : 1;
  }
  const GraphCase test = load(arguments.replay);
  const std::optional<Finding> finding = judge(test);
  std::printf("%s: %s\n", test.text().c_str(), finding ? finding->text.c_str() : "all is well");
  return finding ? 1 : 0;
}

std::vector<std::string> instruction_sets() {
  switch (instruction_set()) {
    case InstructionSet::kAvx512:
      return {"baseline", "avx2", "avx512"};
    case InstructionSet::kAvx2:
      return {"baseline", "avx2"};
    default:
      return {"baseline"};
  }
}

int run(Arguments arguments) {
  layers::register_ops();
  quantize::register_ops();
  require_all_ops();
  if (!arguments.replay.empty()) return replay(arguments);
  if (!arguments.progress.empty()) return run_stage(arguments, arguments.stage);
  if (arguments.seed == 0) arguments.seed = std::random_device()();
  if (arguments.cases == 0 && arguments.seconds == 0) arguments.seconds = 60;
  std::printf("differential: seed %llu\n", static_cast<unsigned long long>(arguments.seed));
  const std::vector<std::string> sets = chosen(arguments.isa, instruction_sets());
  const std::vector<std::string> stages = chosen(arguments.stage, kStages);
  const double seconds = arguments.seconds / static_cast<double>(sets.size() * stages.size());
  int wrong = 0;
  for (const std::string& isa : sets)
    for (const std::string& stage : stages)
      if (wrong < arguments.keep_going) wrong += supervise(arguments, isa, stage, seconds);
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace miniqat::fuzz

int main(int argc, char** argv) {
  using miniqat::fuzz::Arguments;
  Arguments arguments;
  CLI::App program("Random cases on the fast paths, compared with the reference loops; see tests/fuzz/README.md");
  program.add_option("--seed", arguments.seed, "0 draws one and prints it");
  program.add_option("--cases", arguments.cases, "this many cases of each stage on each instruction set");
  program.add_option("--seconds", arguments.seconds, "or for so long in all");
  program.add_option("--stage", arguments.stage)
      ->check(CLI::IsMember({"ops", "convolutions", "graphs", "integers", "all"}))
      ->capture_default_str();
  program.add_option("--isa", arguments.isa)
      ->check(CLI::IsMember({"baseline", "avx2", "avx512", "all"}))
      ->capture_default_str();
  program.add_option("--replay", arguments.replay, "judge a case that was written to a file: NAME.json, NAME.miniqat");
  program.add_option("--out", arguments.out, "where to write what fails")->capture_default_str();
  program.add_option("--first", arguments.first, "number of the first case");
  program.add_option("--keep-going", arguments.keep_going, "end after this many findings")->capture_default_str();
  program.add_option("--progress", arguments.progress)->group("");
  CLI11_PARSE(program, argc, argv);
  try {
    return miniqat::fuzz::run(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "differential: %s\n", error.what());
    return 2;
  }
}
