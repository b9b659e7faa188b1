#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "cli/display/terminal.h"
#include "cli/flags/command_line.h"
#include "cli/flags/setting_flags.h"
#include "cli/inputs.h"
#include "cli/notes.h"
#include "core/files/files.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "training/report/page.h"
#include "training/settings/train_settings.h"

namespace miniqat::cli {

using namespace training;

namespace {

struct ReportArguments {
  ReportRequest request;
  std::string out;
};

/// A signal ends it at once: there is nothing to lose.
Report gather(const ReportRequest& request) {
  ProgressLine line(stderr);
  return gather_report(request, [&](const std::string& doing) { line.show(printable(doing)); });
}

void write_report(const ReportArguments& arguments) {
  require_page_name(arguments.out);
  require_writable(arguments.out);
  std::vector<std::filesystem::path> inputs(arguments.request.runs.begin(), arguments.request.runs.end());
  for (const std::string& input :
       {arguments.request.dataset, arguments.request.data_dir, arguments.request.sensitivity})
    inputs.emplace_back(input);
  require_no_input("--out", arguments.out, inputs);
  require_dataset_for(arguments.request.skip_broken, arguments.request.dataset);
  const Report report = gather(arguments.request);
  const std::string page = report_page(report);
  write_file_atomically(arguments.out, page);
  for (const RunReport& run : report.runs) print_notes(run.notes, run.name);
  constexpr std::size_t kLarge = 5'000'000;
  if (page.size() > kLarge) print_note("note: the page is large; fewer runs, or --pictures 0, make it smaller");
  std::printf("%s: %s, %zu bytes; open it in a browser\n", printable(arguments.out).c_str(),
              counted(report.runs.size(), "run").c_str(), page.size());
}

}  // namespace

void add_report(CommandLine& program) {
  Command command = program.command("report", "Write a page on runs: results, curves, layers, graphs, mistakes");
  const auto arguments = std::make_shared<ReportArguments>();
  ReportRequest& request = arguments->request;
  command.option("RUN", request.runs, "run directories, finished or not; several are compared")
      .required()
      .value_name("")
      .shown_default("");
  command.option("--out", arguments->out, "the HTML file to write").required();
  command.option("--dataset", request.dataset, "a data set; default: the runs' own");
  command.option("--data-dir", request.data_dir, kDataDirHelp);
  add_skip_broken(command, request.skip_broken);
  command.option("--sensitivity", request.sensitivity,
                 "the folder that `miniqat sensitivity` wrote, or its sensitivity.json, to show beside each layer");
  command
      .option(
          "--pictures", request.pictures,
          "pictures of each run to show that the float network gets right and the integers wrong, or worst examples of other data, at most")
      .in_range(std::int64_t{0}, std::int64_t{200});
  command
      .option("--examples", request.examples,
              "test pictures, from the first on, behind the histograms and the noise of layers")
      .in_range(std::int64_t{1}, std::int64_t{1} << 20);
  command.option("--threads", request.threads, kThreadsHelp).in_range(0, 1024);
  command.action([arguments] { write_report(*arguments); });
}

}  // namespace miniqat::cli
