#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "cli/commands.h"
#include "cli/display/terminal.h"
#include "cli/flags/command_line.h"
#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "datasets/known_datasets.h"
#include "training/figures.h"
#include "training/listing/run_list.h"
#include "training/model_source.h"
#include "training/settings/usage_error.h"

namespace miniqat::cli {

using namespace training;

namespace {

struct RunsArguments {
  std::vector<std::string> folders;
  bool commands = false;
  bool json = false;
};

/// What all runs are measured by; "result" where each has to say it.
std::string result_title(const std::vector<ListedRun>& runs) {
  std::set<std::string> names;
  bool are_shares = true;
  for (const ListedRun& run : runs) {
    if (run.decides == nullptr) continue;
    names.insert(run.decides->brief);
    are_shares = are_shares && run.decides->is_share;
  }
  return names.size() == 1 ? *names.begin() : are_shares ? "accuracy" : "result";
}

std::string result_text(const ListedRun& run, const std::string& title) {
  const std::optional<Measure>& measure = run.test ? run.test : run.validation;
  if (!measure) return "-";
  const bool says_it = measure->kind->is_share || measure->kind->brief == title;
  return concat(says_it ? "" : concat(measure->kind->brief, " "), measure->text(), run.test ? "" : " (validation)");
}

std::string duration_text(const ListedRun& run) {
  return run.seconds ? formatted("%.*f s", *run.seconds < 100 ? 1 : 0, *run.seconds) : "-";
}

std::string dashed(const std::string& text) { return text.empty() ? "-" : printable(text); }

/// The network's name, or that of its file.
std::string model_text(const ListedRun& run) {
  return dashed(is_graph_file(run.model) ? std::filesystem::path(run.model).filename().string() : run.model);
}

/// As wide as it is, with all commands.
void print_whole_table(const std::vector<ListedRun>& runs, const std::string& result) {
  std::vector<TableLine> lines = {{"run", "model", "data set", "bits", result, "time", "command"}};
  for (const ListedRun& run : runs)
    lines.push_back({printable(run.name), dashed(run.model), dashed(run.dataset), dashed(run.quantization),
                     result_text(run, result), duration_text(run),
                     dashed(run.complete ? run.command : concat("[", run.state, "] ", run.command))});
  std::printf("%s", aligned(lines, lines.front().size()).c_str());
}

/// As wide as the terminal, with a line below for each run that is not complete.
void print_table(const std::vector<ListedRun>& runs, const std::string& result) {
  std::vector<TableLine> lines = {{"run", "model", "data set", "bits", result, "time"}};
  for (const ListedRun& run : runs)
    lines.push_back({printable(run.name), model_text(run), dashed(datasets::short_name(run.dataset)),
                     dashed(run.quantization), result_text(run, result), duration_text(run)});
  constexpr std::size_t kNames[] = {0, 1, 2, 3};
  fit(lines, text_columns(), kNames);
  std::printf("%s", aligned(lines, lines.front().size()).c_str());
  for (const ListedRun& run : runs)
    if (!run.complete)
      for (const std::string& line : wrapped(printable(concat(run.name, ": ", run.state)), text_columns()))
        std::printf("%s\n", line.c_str());
}

void print_runs(const std::vector<ListedRun>& runs, bool with_commands) {
  const std::string result = result_title(runs);
  if (with_commands)
    print_whole_table(runs, result);
  else
    print_table(runs, result);
}

/// The runs in the folders. Of several folders each run's name is its whole path, and one that lies in two is there
/// once.
std::vector<ListedRun> runs_in(const std::vector<std::string>& folders) {
  if (folders.size() == 1) return list_runs(folders.front());
  std::vector<ListedRun> all;
  std::set<std::filesystem::path> seen;
  for (const std::string& folder : folders)
    for (ListedRun& run : list_runs(folder)) {
      std::error_code failure;
      const std::filesystem::path place = std::filesystem::canonical(run.path, failure);
      if (!failure && !seen.insert(place).second) continue;
      run.name = run.path.lexically_normal().string();
      all.push_back(std::move(run));
    }
  std::ranges::sort(all, [](const ListedRun& a, const ListedRun& b) {
    return std::tie(a.written, a.name) < std::tie(b.written, b.name);
  });
  return all;
}

/// The folders that were given, or the one where `train` puts its runs.
std::vector<std::string> asked_folders(const RunsArguments& arguments) {
  if (!arguments.folders.empty()) return arguments.folders;
  std::error_code failure;
  if (!std::filesystem::is_directory("runs", failure))
    throw MissingArgument("there is no folder runs here, where train puts its runs: miniqat runs DIR takes another");
  return {"runs"};
}

void show_runs(const RunsArguments& arguments) {
  if (arguments.commands && arguments.json) refuse_ignored("--commands", "--json, which has them");
  const std::vector<std::string> folders = asked_folders(arguments);
  const std::vector<ListedRun> runs = runs_in(folders);
  if (arguments.json) {
    nlohmann::ordered_json json = nlohmann::ordered_json::array();
    for (const ListedRun& run : runs) json.push_back(run.json());
    std::printf("%s\n", json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
  } else if (runs.empty()) {
    std::printf("no runs in %s\n", printable(joined(folders)).c_str());
  } else {
    print_runs(runs, arguments.commands);
  }
}

}  // namespace

void add_runs(CommandLine& program) {
  Command command = program.command("runs", "Compare the runs in folders: bits, accuracy, time");
  const auto arguments = std::make_shared<RunsArguments>();
  command
      .option("DIR", arguments->folders,
              "folders with runs, also in folders below them; the newest run comes last; default: runs")
      .value_name("")
      .shown_default("");
  command.flag("--commands", arguments->commands,
               "print the commands that made the runs, too, and whole paths, however wide the table gets");
  command.flag("--json", arguments->json, "print one JSON array, with all that the table has and more");
  command.action([arguments] { show_runs(*arguments); });
}

}  // namespace miniqat::cli
