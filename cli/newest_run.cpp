#include "cli/newest_run.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

#include "core/files/files.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "training/listing/run_list.h"
#include "training/run/run_directory.h"

namespace miniqat::cli {

using namespace training;

namespace fs = std::filesystem;

namespace {

/// Where `train` puts its runs.
constexpr const char* kRuns = "runs";

enum class Fit { kAny, kFloat, kQuantized, kBatchNorms };

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
    {"runs", Fit::kAny, "", ""},
    {"verify", Fit::kQuantized, "", ""},
    {"report", Fit::kAny, " --out ", ".html"},
    {"export", Fit::kQuantized, " --out ", ".onnx"},
    {"export", Fit::kFloat, " --format onnx-float --out ", ".onnx"},
    {"calibrate", Fit::kFloat, " --out ", "-calibrated"},
    {"quantize", Fit::kFloat, " --out ", "-quantized"},
    {"sensitivity", Fit::kFloat, " --out ", "-sensitivity"},
    {"reestimate", Fit::kBatchNorms, " --out ", "-reestimated"},
};

bool has_batch_norms(const ListedRun& run) {
  const fs::path graph = RunDirectory::open(run.path).train_graph();
  std::error_code failure;
  return fs::exists(graph, failure) && read_file(graph).find("BatchNorm") != std::string::npos;
}

bool fits(const RunCommand& command, const ListedRun& run) {
  const bool has_end = run.complete || run.state.starts_with("stopped");
  if (!has_end || command.fit == Fit::kAny) return has_end;
  if (command.fit == Fit::kBatchNorms) return run.complete && has_batch_norms(run);
  return (command.fit == Fit::kFloat) == (run.quantization == "float");
}

std::string command_line_of(const RunCommand& command, const ListedRun& run) {
  const std::string folder = run.path.string();
  const std::string made = command.ending.empty() ? "" : shell_path(concat(folder, command.ending));
  return concat("miniqat ", command.name, " ", shell_path(folder), command.flags, made);
}

/// "" if no run below runs/ fits.
std::string line_for_newest_run(const std::string& command) {
  std::error_code failure;
  if (!fs::is_directory(kRuns, failure)) return "";
  const std::vector<ListedRun> runs = list_runs(kRuns);
  for (auto run = runs.rbegin(); run != runs.rend(); ++run)
    for (const RunCommand& known : kRunCommands)
      if (command == known.name && fits(known, *run)) return command_line_of(known, *run);
  return "";
}

/// What makes a run that fits, in a folder that is not there yet: minutes for the data set that needs no files.
std::string first_command(Fit fit) {
  const std::string name = concat(kRuns, "/first");
  std::string folder = name;
  std::error_code failure;
  for (int i = 2; fs::exists(folder, failure); ++i) folder = concat(name, "-", i);
  const char* flags = fit == Fit::kFloat ? " --float" : fit == Fit::kBatchNorms ? " --model lenet_bn" : "";
  return concat("miniqat train", flags, " --epochs 1 --out ", folder);
}

}  // namespace

std::string advice_for_newest_run(const std::string& command) {
  const auto known = std::ranges::find(kRunCommands, command, &RunCommand::name);
  if (known == std::ranges::end(kRunCommands)) return "";
  try {
    const std::string line = line_for_newest_run(command);
    if (!line.empty()) return "for the newest run: " + line;
  } catch (const Error&) {
    // Advice is no reason for another error.
  }
  return concat("no run below ", kRuns, "/ is for this yet; this makes one: ", first_command(known->fit));
}

}  // namespace miniqat::cli
