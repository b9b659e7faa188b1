#include <chrono>
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
#include "training/quantize/quantization_run.h"
#include "training/run/run_source.h"
#include "training/settings/train_settings.h"

namespace miniqat::cli {

using namespace training;

namespace {

struct QuantizeArguments {
  std::string run;
  std::string out;
  bool resume = false;
  bool overwrite = false;
  bool verbose = false;
};

/// The seed of the training chooses the pictures of calibration, too.
FlagChanges calibration_changes() { return {.omitted = {"seed"}}; }

/// Without what the network decides, and without float steps: the ranges are there from the beginning.
FlagChanges training_changes() {
  const std::string inherited = "the float run's";
  FlagChanges changes{.omitted = settings_of_float_run()};
  for (const char* setting : {"model", "dataset"}) changes.omitted.erase(setting);
  for (const char* setting : kSettingsOfModel) changes.omitted.erase(setting);
  changes.help = {
      {"model", "an ONNX model with its weights, instead of a float run; needs --dataset"},
      {"dataset", concat("with --model: ", help_of_dataset())},
      {"validation",
       "training pictures held out to decide between the networks; default: as many as the float run held out, or one in twelve"},
      {"learning_rate",
       "the schedule's base rate; default: a fifth of the float run's, or of the default of another optimizer; all of it where a layer has 2 bits"},
      {"per_channel",
       "one weight range per output channel; default: yes for weights of 4 bits and fewer in a network with batch norms (--per-channel=false: one for all)"},
      {"bn_fold",
       concat(
           kFoldingHelp,
           "; default: late for weights of 4 bits and fewer (single where a layer has one range, or with --scales power-of-two), else tf")},
      {"sums_bits",
       "bits of residual sums and their operands; a second quantizer narrows them to --activation-bits for layers; default: 8 with activations of 4 bits and fewer, else --activation-bits"},
      {"reestimate",
       "after the last step, estimate the batch norms' moving statistics again from this number of batches of training pictures; 0: no estimate; default: 50 if the network has batch norms and no --freeze-bn-delay, else 0"}};
  for (const char* setting : {"model", "dataset"}) changes.shown_defaults[setting] = "";
  for (const char* setting :
       {"data_dir",        "augment",   "shift_ms", "gain_db",           "noise",     "noise_db",     "class_weights",
        "batch_size",      "optimizer", "huber",    "momentum",          "nesterov",  "weight_decay", "decay_all",
        "label_smoothing", "seed",      "shards",   "threads_per_shard", "log_every", "save_every"})
    changes.shown_defaults[setting] = inherited;
  for (const char* setting : {"validation", "bn_fold", "sums_bits", "reestimate"}) changes.shown_defaults[setting] = "";
  changes.groups = groups_of_training();
  return changes;
}

struct QuantizeFlags {
  explicit QuantizeFlags(Command& command)
      : calibration(command, "Calibration", calibration_changes()),
        training(command, kRunHeading, training_changes(), usual_quantization()) {}

  SettingFlags<CalibrateSettings> calibration;
  SettingFlags<TrainSettings> training;
};

/// The steps of the training, the batches of what comes before.
class QuantizeDisplay : public TrainDisplay {
 public:
  using TrainDisplay::TrainDisplay;
  void on_batch(std::int64_t done, std::int64_t total) override { batches_.on_batch(done, total); }

 private:
  BatchDisplay batches_;
};

/// The network that is quantized.
FloatRun source_of(const QuantizeArguments& arguments, const SettingFlags<TrainSettings>& flags) {
  require_run_or_model(arguments.run, flags);
  if (!arguments.run.empty()) {
    if (flags.was_given("dataset")) throw UsageError("--dataset goes with --model: a float run has its own");
    if (arguments.overwrite && is_or_lies_in(arguments.run, arguments.out))
      throw UsageError("--overwrite would delete the run in --run: give another --out");
    return read_float_run(arguments.run);
  }
  TrainSettings settings;
  flags.apply(settings);
  // It has the bits of what becomes of the model.
  settings.rewrite = {};
  if (arguments.overwrite && is_or_lies_in(settings.model, arguments.out))
    throw UsageError(concat("--overwrite would delete ", settings.model, ", which --model reads: give another --out"));
  print_note(settle_model(settings, flags.was_given("dataset"), flags.was_given("batch_size")));
  return read_float_model(settings);
}

QuantizationPlan plan_from(const QuantizeArguments& arguments, const QuantizeFlags& flags) {
  const FloatRun source = source_of(arguments, flags.training);
  QuantizationPlan plan{.run = arguments.run};
  flags.calibration.apply(plan.calibrate);
  check_calibration(flags.calibration, plan.calibrate);
  plan.training = quantization_defaults(source);
  if (flags.training.was_given("freeze_bn_delay")) plan.training.reestimate = 0;
  apply_flags(flags.training, plan.training);
  const std::vector<std::string> given = flags.training.given();
  settle(plan, source, {given.begin(), given.end()});
  return plan;
}

/// The place of the data may have changed, and with shards the number of threads, as in `train --resume`; other
/// settings would make it another run.
QuantizationPlan plan_of(const RunDirectory& out, const QuantizeArguments& arguments, const QuantizeFlags& flags) {
  const auto refuse = [](const std::string& flag) {
    throw UsageError(concat(flag, ": --resume takes the settings in quantize.json; leave it out"));
  };
  if (!arguments.run.empty()) refuse("--run");
  if (arguments.overwrite) throw UsageError("--overwrite deletes the run that --resume would go on with");
  for (const std::string& name : flags.calibration.given()) refuse(flag_of(name));
  for (const std::string& name : flags.training.given())
    if (name != "data_dir" && name != "threads") refuse(flag_of(name));
  QuantizationPlan plan = read_plan(out);
  const std::int64_t threads = plan.training.threads;
  flags.training.apply(plan.training);
  plan.training.data_dir = resolved_data_dir(plan.training.dataset, plan.training.data_dir);
  if (!flags.training.was_given("threads")) return plan;
  check(plan.training);
  if (plan.training.threads != threads && !plan.training.has_shards())
    throw UsageError(concat("--threads differs from the run's own (", threads, "); leave it out to resume"));
  resolve(plan.training);
  return plan;
}

void quantize_and_show(const QuantizationPlan& plan, const RunDirectory& out, const QuantizeArguments& arguments) {
  const auto started = std::chrono::steady_clock::now();
  QuantizeDisplay display(arguments.verbose);
  const QuantizationResult result = quantize_run(plan, out, arguments.resume, display);
  std::printf("\n%s%s", quantize_table(result).c_str(), quantize_conclusion(result).c_str());
  std::printf("done in %.1f s; run directory %s\n",
              std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count(),
              printable(out.path().string()).c_str());
}

void quantize_as_asked(const QuantizeArguments& arguments, const QuantizeFlags& flags) {
  if (!arguments.resume) {
    const QuantizationPlan plan = plan_from(arguments, flags);
    quantize_and_show(plan, new_quantization(arguments.out, RunDirectory::existing_if(arguments.overwrite)), arguments);
    return;
  }
  const RunDirectory out = resumed_quantization(arguments.out);
  const QuantizationPlan plan = plan_of(out, arguments, flags);
  if (is_quantized(out))
    std::printf("The run in %s is complete; quantize.json has its figures.\n", printable(out.path().string()).c_str());
  else
    quantize_and_show(plan, out, arguments);
}

}  // namespace

void add_quantize(CommandLine& program) {
  Command command = program.command(
      "quantize",
      "Quantize a float run or an ONNX model: calibrate, train, estimate batch norms again, keep the best, measure integers");
  const auto arguments = std::make_shared<QuantizeArguments>();
  command.run(arguments->run, "the directory of a float run", Command::Run::kOptional);
  command.option("--out", arguments->out, "the run directory to make").required();
  command.flag("--resume", arguments->resume, "go on with the run in --out, with its own settings");
  command.flag("--overwrite", arguments->overwrite, "delete the run that is in --out, and begin a new one");
  command.flag("--verbose", arguments->verbose, "print the rewrite's report and the plan's memory");
  const auto flags = std::make_shared<QuantizeFlags>(command);
  command.action([arguments, flags] { run_until_stopped([&] { quantize_as_asked(*arguments, *flags); }); });
}

}  // namespace miniqat::cli
