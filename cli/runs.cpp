#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "cli/display/text_table.h"
#include "cli/flags/command_line.h"
#include "core/text/counted.h"
#include "core/text/json.h"
#include "core/text/quote.h"
#include "training/listing/run_list.h"
#include "training/percent.h"

namespace miniqat::cli {

using namespace training;

namespace {

struct RunsArguments {
  std::string folder;
  bool json = false;
};

std::string accuracy_text(const ListedRun& run) {
  if (run.test_accuracy) return percent(*run.test_accuracy);
  return run.validation_accuracy ? percent(*run.validation_accuracy) + " (validation)" : "-";
}

std::string duration_text(const ListedRun& run) {
  if (!run.seconds) return "-";
  char text[32];
  std::snprintf(text, sizeof text, *run.seconds < 100 ? "%.1f s" : "%.0f s", *run.seconds);
  return text;
}

std::string dashed(const std::string& text) { return text.empty() ? "-" : printable(text); }

void print_runs(const std::vector<ListedRun>& runs) {
  std::vector<TableLine> lines = {{"run", "model", "data set", "bits", "accuracy", "time", "command"}};
  for (const ListedRun& run : runs)
    lines.push_back({printable(run.name), dashed(run.model), dashed(run.dataset), dashed(run.quantization),
                     accuracy_text(run), duration_text(run),
                     dashed(run.complete ? run.command : concat("[", run.state, "] ", run.command))});
  std::printf("%s", aligned(lines, lines.front().size()).c_str());
}

void show_runs(const RunsArguments& arguments) {
  const std::vector<ListedRun> runs = list_runs(arguments.folder);
  if (arguments.json) {
    nlohmann::ordered_json json = nlohmann::ordered_json::array();
    for (const ListedRun& run : runs) json.push_back(run.json());
    std::printf("%s\n", json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
  } else if (runs.empty()) {
    std::printf("no runs in %s\n", printable(arguments.folder).c_str());
  } else {
    print_runs(runs);
  }
}

}  // namespace

void add_runs(CommandLine& program) {
  Command command = program.command("runs", "Compare the runs in a folder: bits, accuracy, time, command");
  const auto arguments = std::make_shared<RunsArguments>();
  command.option("DIR", arguments->folder, "a folder with runs, also in folders below it; the newest run comes last")
      .required()
      .value_name("")
      .shown_default("");
  command.flag("--json", arguments->json, "print one JSON array, with all that the table has and more");
  command.action([arguments] { show_runs(*arguments); });
}

}  // namespace miniqat::cli
