// Random cases on the fast paths, compared with what specifies them; README.md beside this says how to use it.

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "core/kernels/instruction_set.h"
#include "core/kernels/onednn.h"
#include "core/text/error.h"
#include "layers/layers.h"
#include "quantize/quantize.h"
#include "tests/fuzz/cases.h"
#include "tests/fuzz/stages.h"

namespace miniqat::fuzz {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<std::string> chosen(const std::string& one, const std::vector<std::string>& all) {
  return one == "all" ? all : std::vector{one};
}

/// Seconds, compiling C, shrinking and guarded memory included, and those of one case alone.
constexpr unsigned kLongestCase = 300, kLongestReplay = 60;

/// The case that runs, for whoever picks up the pieces.
void note_progress(const Arguments& arguments, std::int64_t number) {
  static const int file = open(arguments.progress.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (pwrite(file, &number, sizeof number, 0) != sizeof number) fail("cannot write ", arguments.progress);
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
  std::printf("%-12s %-8s seed %llu: %lld cases in %.1f s, %d wrong", stage.c_str(), name_of(isa_level()).data(),
              static_cast<unsigned long long>(arguments.seed), static_cast<long long>(number - arguments.first),
              elapsed(), wrong);
  const double vague =
      counts.compared > 0 ? 100.0 * static_cast<double>(counts.vague) / static_cast<double>(counts.compared) : 0;
  std::printf("; %lld numbers", static_cast<long long>(counts.compared));
  if (counts.steps > 0)
    std::printf(" in %lld steps, %.3f%% of them hardly bounded", static_cast<long long>(counts.steps), vague);
  if (const std::string missing = left_out(stage); !missing.empty()) std::printf("; %s", missing.c_str());
  std::printf("\n");
  std::fflush(stdout);
  if (arguments.most_vague >= 0 && vague > arguments.most_vague) {
    std::fprintf(stderr, "stage %s, %s: %.3f%% of the numbers are hardly bounded, above the limit of %g%%\n",
                 stage.c_str(), name_of(isa_level()).data(), vague, arguments.most_vague);
    ++wrong;
  }
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
                                      "--shrink",
                                      std::to_string(arguments.shrink),
                                      "--most-vague",
                                      std::to_string(arguments.most_vague),
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
    const int signal = WTERMSIG(status);
    const auto dies = [&](const std::string& path) {
      const int again = run_again(isa, {"miniqat_differential", "--replay", path}, true);
      return WIFSIGNALED(again) && WTERMSIG(again) == signal;
    };
    report_death(arguments, isa, stage, number,
                 concat("ended by signal ", signal, signal == SIGALRM ? " (takes for ever)" : ""), dies);
    first = number + 1;
    if (++wrong >= arguments.keep_going) break;
  }
  std::filesystem::remove(progress);
  return wrong;
}

int replay_file(const std::string& path) {
  alarm(kLongestReplay);
  const std::string wrong = replay(path);
  std::printf("%s\n", wrong.empty() ? "all is well" : wrong.c_str());
  return wrong.empty() ? 0 : 1;
}

/// Those that differ on this machine.
std::vector<std::string> instruction_sets() {
  std::vector<std::string> sets;
  for (IsaLevel level = IsaLevel::kBaseline; level <= isa_level();
       level = static_cast<IsaLevel>(static_cast<int>(level) + 1))
    if (level_of_this_cpu(level) == level) sets.emplace_back(name_of(level));
  // Which lies beyond all levels but the last.
  if (onednn::has_bfloat16() && sets.back() != name_of(IsaLevel::kAmx)) sets.emplace_back(name_of(IsaLevel::kAmx));
  return sets;
}

int run(Arguments arguments) {
  layers::register_ops();
  quantize::register_ops();
  require_all_ops();
  if (!arguments.replay.empty()) return replay_file(arguments.replay);
  if (!arguments.progress.empty()) return run_stage(arguments, arguments.stage);
  if (arguments.seed == 0) arguments.seed = std::random_device()();
  if (arguments.cases == 0 && arguments.seconds == 0) arguments.seconds = 60;
  std::printf("differential: seed %llu\n", static_cast<unsigned long long>(arguments.seed));
  const std::vector<std::string> sets = chosen(arguments.isa, instruction_sets());
  const std::vector<std::string> stages = chosen(arguments.stage, all_stages());
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
      ->check(CLI::IsMember({"ops", "convolutions", "graphs", "integers", "optimizers", "all"}))
      ->capture_default_str();
  program.add_option("--isa", arguments.isa)
      ->check(CLI::IsMember({"baseline", "avx2", "avx2-vnni", "avx512", "avx512-vnni", "amx", "all"}))
      ->capture_default_str();
  program.add_option("--replay", arguments.replay, "judge a case that was written to a file: NAME.json, NAME.miniqat");
  program.add_option("--out", arguments.out, "where to write what fails")->capture_default_str();
  program.add_option("--first", arguments.first, "number of the first case");
  program.add_option("--keep-going", arguments.keep_going, "end after this many findings")->capture_default_str();
  program.add_option("--shrink", arguments.shrink, "seconds to spend on a finding; 0 only counts them")
      ->capture_default_str();
  program.add_option("--most-vague", arguments.most_vague,
                     "fail when more than this percentage of a stage's numbers are hardly bounded");
  program.add_option("--progress", arguments.progress)->group("");
  CLI11_PARSE(program, argc, argv);
  try {
    return miniqat::fuzz::run(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "differential: %s\n", error.what());
    return 2;
  }
}
