#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "cli/display/run_display.h"
#include "cli/flags/command_line.h"
#include "cli/flags/setting_flags.h"
#include "cli/process.h"
#include "core/files/files.h"
#include "core/text/quote.h"
#include "training/calibrate/reestimation.h"
#include "training/quantize/quantization_plan.h"
#include "training/settings/train_settings.h"

namespace miniqat::cli {

using namespace training;

namespace {

struct ReestimateArguments {
  ReestimationRequest request;
  std::string out;
  bool overwrite = false;
};

/// The accuracies in quantize.json are those of this very network.
void refuse_network_of_quantize(const RunDirectory& run) {
  const bool is_whole = is_there(run.quantization());
  if (!is_whole && !quantization_of_trained(run)) return;
  throw UsageError(concat("--run: ", run.path().string(), " holds ", is_whole ? "a run" : "the training",
                          " of quantize, ",
                          "whose table in quantize.json would no longer fit; --out DIR makes another run from it"));
}

RunDirectory directory_for(const ReestimateArguments& arguments) {
  if (arguments.out.empty()) {
    if (arguments.overwrite) throw UsageError("--overwrite is for --out");
    RunDirectory run = RunDirectory::resume(arguments.request.run);
    refuse_network_of_quantize(run);
    return run;
  }
  if (arguments.overwrite && is_or_lies_in(arguments.request.run, arguments.out))
    throw UsageError("--overwrite would delete the run in --run: give another --out, or none");
  return RunDirectory::fresh(arguments.out, "give another --out, or --overwrite to delete that run",
                             RunDirectory::existing_if(arguments.overwrite));
}

void reestimate_run(const ReestimateArguments& arguments) {
  run_until_stopped([&] {
    const RunDirectory out = directory_for(arguments);
    BatchDisplay display;
    const Reestimated result = reestimate(arguments.request, out, display);
    std::printf("done in %.1f s: %s, before %s%s; run directory %s\n", result.seconds, result.after.text().c_str(),
                result.after.validation ? "validation " : "", result.before.text(false).c_str(),
                printable(out.path().string()).c_str());
  });
}

}  // namespace

void add_reestimate(CommandLine& program) {
  Command command = program.command(
      "reestimate",
      "Estimate the statistics of a finished run's batch norms again, from some batches, without training");
  const auto arguments = std::make_shared<ReestimateArguments>();
  command.run(arguments->request.run, "the directory of a run that is complete");
  command.option("--out", arguments->out, "a run directory to make; default: the run's own checkpoint is replaced");
  command.option("--data-dir", arguments->request.data_dir, kDataDirHelp);
  command.option("--threads", arguments->request.threads, kThreadsHelp).in_range(0, 1024);
  command.flag("--overwrite", arguments->overwrite, "delete the run that is in --out");
  const auto flags = std::make_shared<SettingFlags<ReestimateSettings>>(command, "Re-estimation");
  command.action([arguments, flags] {
    flags->apply(arguments->request.reestimate);
    check_limits(ReestimateSettings::table(), arguments->request.reestimate);
    reestimate_run(*arguments);
  });
}

}  // namespace miniqat::cli
