#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "cli/display/run_display.h"
#include "cli/display/tables.h"
#include "cli/flags/command_line.h"
#include "cli/flags/setting_flags.h"
#include "cli/model_start.h"
#include "cli/notes.h"
#include "cli/process.h"
#include "core/text/quote.h"
#include "training/calibrate/calibration.h"
#include "training/run/run_directory.h"
#include "training/settings/train_settings.h"

namespace miniqat::cli {

using namespace training;

namespace {

struct CalibrateArguments {
  CalibrationRequest request;
  std::string out;
  bool overwrite = false;
  bool verbose = false;
};

RunDirectory new_directory(const CalibrateArguments& arguments) {
  if (arguments.overwrite && !arguments.request.run.empty() && is_or_lies_in(arguments.request.run, arguments.out))
    throw UsageError("--overwrite would delete the run in --run: give another --out");
  if (const auto& model = arguments.request.model; arguments.overwrite && model)
    if (is_or_lies_in(model->model, arguments.out))
      throw UsageError(concat("--overwrite would delete ", model->model, ", which --model reads: give another --out"));
  return RunDirectory::fresh(arguments.out, "give another --out, or --overwrite to delete that run",
                             RunDirectory::existing_if(arguments.overwrite));
}

class CalibrateDisplay : public BatchDisplay {
 public:
  explicit CalibrateDisplay(bool verbose) : verbose_(verbose) {}

  void on_rewrite(const quantize::RewriteReport& report) override {
    std::printf("%s", with_flags(verbose_ ? report.text() : report.notes()).c_str());
    std::fflush(stdout);
  }

 private:
  const bool verbose_;
};

/// What equalization, rounding and bias correction have done; "" without any.
std::string details(const Calibrated& result) {
  std::string text;
  if (result.equalization) text += "\nequalization\n" + result.equalization->text();
  if (result.rounding) text += "\nrounding\n" + result.rounding->text();
  if (result.bias_correction) text += "\nbias correction\n" + result.bias_correction->text();
  return text;
}

void calibrate_run(const CalibrateArguments& arguments) {
  run_until_stopped([&] {
    const RunDirectory out = new_directory(arguments);
    CalibrateDisplay display(arguments.verbose);
    const Calibrated result = calibrate(arguments.request, out, display);
    if (arguments.verbose) std::printf("%s%s", details(result).c_str(), range_table(result.ranges).c_str());
    std::printf("done in %.1f s: %s, in float %s%s; run directory %s\n", result.seconds,
                result.quantized.text().c_str(), result.quantized.validation ? "validation " : "",
                result.in_float.text(false).c_str(), printable(out.path().string()).c_str());
  });
}

}  // namespace

void add_calibrate(CommandLine& program) {
  Command command = program.command(
      "calibrate",
      "Quantize a float run or an ONNX model without training: rewrite its graph and find the ranges from some batches");
  const auto arguments = std::make_shared<CalibrateArguments>();
  command.run(arguments->request.run, "the directory of a float run", Command::Run::kOptional);
  command.option("--out", arguments->out, "the run directory to make").required();
  command.option("--dataset", arguments->request.dataset, "a data set; default: the run's own");
  command.option("--data-dir", arguments->request.data_dir, kDataDirHelp);
  command.option("--threads", arguments->request.threads, kThreadsHelp).in_range(0, 1024);
  command.flag("--overwrite", arguments->overwrite, "delete the run that is in --out");
  command.flag("--verbose", arguments->verbose,
               "print the rewrite's report, the equalized, rounded and corrected layers, and every quantizer's range");
  const auto flags = std::make_shared<SettingFlags<CalibrateSettings>>(command, "Calibration");
  const auto model_flags = make_model_flags(command);
  // Without what counts training steps: none are taken.
  const auto rewrite_flags = std::make_shared<SettingFlags<RewriteSettings>>(
      command, "Quantization", FlagChanges{.omitted = {"quant_delay", "freeze_bn_delay"}});
  command.action([arguments, flags, model_flags, rewrite_flags] {
    CalibrationRequest& request = arguments->request;
    request.model = model_instead_of_run(*model_flags, request.run, request.dataset, request.data_dir);
    request.skip_broken = asks_to_skip_broken(*model_flags);
    CalibrateSettings& settings = request.calibrate;
    flags->apply(settings);
    check_calibration(*flags, settings);
    RewriteSettings rewrite;
    rewrite_flags->apply(rewrite);
    if (rewrite_flags->was_given("ema_decay") && settings.method != quantize::CalibrationMethod::kMovingAverage)
      throw UsageError("--ema-decay goes with --method moving-average");
    refuse_ignored_symmetry(*rewrite_flags, rewrite);
    load_layer_bits(rewrite);
    check_options<RewriteSettings>([&] { rewrite.check(); });
    arguments->request.rewrite = rewrite;
    calibrate_run(*arguments);
  });
}

}  // namespace miniqat::cli
