#include "cli/newest_run.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/text/shell_quote.h"
#include "training/listing/run_list.h"

namespace miniqat::cli {

using namespace training;

namespace fs = std::filesystem;

namespace {

enum class Fit { kAny, kFloat, kQuantized };

/// A command and the runs that it takes. Behind the run come the flags and, where there is an ending, what is written:
/// the name of the run with that ending.
struct RunCommand {
  std::string_view name;
  Fit fit;
  const char* flags;
  std::string_view ending;
};

constexpr RunCommand kRunCommands[] = {
    {"eval", Fit::kAny, "", ""},
    {"predict", Fit::kAny, " 0", ""},
    {"inspect", Fit::kAny, "", ""},
    {"verify", Fit::kQuantized, "", ""},
    {"report", Fit::kAny, " --out ", ".html"},
    {"export", Fit::kQuantized, " --out ", ".onnx"},
    {"export", Fit::kFloat, " --format onnx-float --out ", ".onnx"},
    {"calibrate", Fit::kFloat, " --out ", "-calibrated"},
    {"quantize", Fit::kFloat, " --out ", "-quantized"},
    {"sensitivity", Fit::kFloat, " --out ", "-sensitivity"},
};

bool fits(const RunCommand& command, const ListedRun& run) {
  const bool has_end = run.complete || run.state.starts_with("stopped");
  return has_end && (command.fit == Fit::kAny || (command.fit == Fit::kFloat) == (run.quantization == "float"));
}

std::string command_line_of(const RunCommand& command, const ListedRun& run) {
  const std::string folder = run.path.string();
  const std::string made = command.ending.empty() ? "" : shell_quoted(concat(folder, command.ending));
  return concat("miniqat ", command.name, " ", shell_quoted(folder), command.flags, made);
}

std::vector<ListedRun> runs_here() {
  std::error_code failure;
  try {
    return fs::is_directory("runs", failure) ? list_runs("runs") : std::vector<ListedRun>();
  } catch (const Error&) {
    // Advice is no reason for another error.
    return {};
  }
}

}  // namespace

std::string advice_for_newest_run(const std::string& command) {
  if (std::ranges::find(kRunCommands, command, &RunCommand::name) == std::ranges::end(kRunCommands)) return "";
  const std::vector<ListedRun> runs = runs_here();
  for (auto run = runs.rbegin(); run != runs.rend(); ++run)
    for (const RunCommand& known : kRunCommands)
      if (command == known.name && fits(known, *run))
        return concat("for the newest run: ", command_line_of(known, *run));
  return "";
}

}  // namespace miniqat::cli
