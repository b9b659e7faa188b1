#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/roofline.h"
#include "cli/advice.h"
#include "cli/commands.h"
#include "cli/display/run_display.h"
#include "cli/flags/command_line.h"
#include "cli/flags/setting_flags.h"
#include "cli/inputs.h"
#include "cli/process.h"
#include "cli/train_ranks.h"
#include "core/engine/profile.h"
#include "core/files/files.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/threads/parallel.h"
#include "distributed/launch.h"
#include "training/model_source.h"
#include "training/quantize/quantization_plan.h"
#include "training/run/data_of_run.h"
#include "training/settings/usage_error.h"
#include "training/train/run_settings.h"
#include "training/train/trainer.h"

namespace miniqat::cli {

using namespace training;

namespace {

struct TrainArguments {
  std::string out;
  std::string config;
  bool overwrite = false;
  bool verbose = false;
  /// The file for the trace of the profile; "" is the run directory's trace.json. None: nothing is timed.
  std::optional<std::string> profile;
  TrainExtras extras;
};

/// The trace is written last; what would keep it from being written should be known before the run.
std::string checked_trace_path(const std::string& path) {
  const std::filesystem::path directory = std::filesystem::path(path).parent_path();
  if (!directory.empty() && !std::filesystem::is_directory(directory))
    throw UsageError(concat("--profile: there is no directory ", directory.string()));
  if (std::filesystem::is_directory(path)) throw UsageError(concat("--profile: ", path, " is a directory"));
  return path;
}

RunDirectory new_directory(const TrainArguments& arguments, const TrainSettings& settings) {
  const std::filesystem::path out = arguments.out.empty() ? default_directory(settings) : arguments.out;
  if (arguments.overwrite) require_inputs_elsewhere(settings, out);
  return RunDirectory::fresh(out, "give another --out, --resume to go on with that run, or --overwrite to delete it",
                             RunDirectory::existing_if(arguments.overwrite));
}

/// Throws UsageError for a trace in the place of what the training reads.
void require_trace_elsewhere(const std::filesystem::path& trace, const TrainSettings& settings, const RunDirectory& run,
                             bool resume) {
  std::vector<std::filesystem::path> inputs;
  if (resume) inputs = run.files();
  for (const std::string& input : {settings.dataset, settings.data_dir, settings.model, settings.init_checkpoint,
                                   settings.class_weights, settings.rewrite.bits_config})
    inputs.emplace_back(input);
  require_no_input("--profile", trace, inputs);
}

void report_profile(const Profile& profile, const std::filesystem::path& path) {
  const MachineRates rates = bench::measure_rates();
  std::printf("\n%s", profile_table(profile, rates).c_str());
  write_file_atomically(path, profile_trace(profile, rates));
  std::printf("the last %s as a Chrome trace (chrome://tracing, ui.perfetto.dev): %s\n",
              counted(profile.kept().size(), "step").c_str(), printable(path.string()).c_str());
}

/// `asked`: the folder of the data as it was given, which other ranks look up for themselves: relative to where they
/// are, or in their own $MINIQAT_DATA_DIR.
void train_and_show(const TrainSettings& settings, const std::string& asked, const RunDirectory& run,
                    const TrainArguments& arguments, TrainExtras extras) {
  if (arguments.profile) require_trace_elsewhere(*arguments.profile, settings, run, extras.resume);
  TrainSettings of_ranks = settings;
  of_ranks.data_dir = asked;
  RankSide ranks = lead_ranks(of_ranks, extras);
  Profile profile;
  if (arguments.profile) extras.profile = &profile;
  extras.all_names = arguments.verbose;
  {
    TrainDisplay display(arguments.verbose);
    for (const std::string& warning : ranks.warnings()) display.warn(warning);
    train(settings, run, extras, display);
  }
  ranks.close();
  if (!profile.kept().empty())
    report_profile(profile, arguments.profile->empty() ? run.trace() : std::filesystem::path(*arguments.profile));
  InterruptGuard::check();
}

void train_new(const TrainArguments& arguments, const SettingFlags<TrainSettings>& flags) {
  TrainSettings settings;
  bool batch_size_given = flags.was_given("batch_size");
  AskedValidation asked{.size = flags.was_given("validation"), .method = flags.was_given("validation_method")};
  std::vector<std::string> notes;
  if (!arguments.config.empty()) {
    const Json config = read_json(arguments.config);
    settings_from_json(config, settings, arguments.config);
    use_own_copies(settings, arguments.config);
    batch_size_given = batch_size_given || config.contains("batch_size");
    if (settings.validation > 0 && !config.contains("validation_method") && !asked.size && !asked.method) {
      settings.validation_method = datasets::HoldOut::kStride;
      notes.push_back(concat("note: ", arguments.config, " is of an earlier version: --validation-method stride"));
    }
    // The whole of a run's settings, repeated.
    asked.size = asked.size || (config.contains("validation") && !settings.init_checkpoint.empty() &&
                                !flags.was_given("init_checkpoint"));
  }
  const std::string former = settings.optimizer;
  apply_flags(flags, settings);
  require_rate_for(former, settings, flags.was_given("learning_rate"));
  load_layer_bits(settings.rewrite);
  check(settings);
  const std::string asked_data_dir = settings.data_dir;
  const std::string note = batch_size_given ? "" : adopt_batch_size(settings);
  resolve(settings);
  const std::string inherited = inherit_validation_part(settings, asked);
  set_thread_count(static_cast<int>(settings.threads));
  const RunDirectory run = new_directory(arguments, settings);
  TrainExtras extras = arguments.extras;
  extras.given = flags.given();
  extras.notes = notes;
  extras.notes.insert(extras.notes.end(), {note, inherited});
  if (arguments.config.empty() && extras.given.empty()) {
    std::printf("%s", plan_of_defaults(settings, run.path()).c_str());
    std::fflush(stdout);
  }
  train_and_show(settings, asked_data_dir, run, arguments, extras);
}

/// A run goes on with the settings it began with: other values on the command line would make it another run.
void train_on(const TrainArguments& arguments, const SettingFlags<TrainSettings>& flags) {
  if (!arguments.config.empty()) throw UsageError("--resume takes the run's own config.json; leave --config out");
  if (arguments.overwrite) throw UsageError("--overwrite deletes the run that --resume would go on with");
  TrainSettings asked;
  flags.apply(asked);
  const std::filesystem::path folder = arguments.out.empty() ? default_directory(asked) : arguments.out;
  if (arguments.out.empty() && !is_there(folder))
    throw MissingArgument(concat("--resume: --out names the run to go on with; without --out it would be ",
                                 folder.string(), ", which is not there"));
  const RunDirectory run = resumed_training(folder);
  TrainExtras extras = arguments.extras;
  extras.begun = begun_settings(run);
  TrainSettings wanted = extras.begun;
  apply_flags(flags, wanted);
  wanted.dataset = resolved_dataset(wanted.dataset);
  const std::string asked_data_dir = wanted.data_dir;
  wanted.data_dir = resolved_data_dir(wanted.dataset, wanted.data_dir);
  require_same_run(wanted, extras.begun);
  require_own_length(run, wanted);
  check(wanted);
  set_thread_count(static_cast<int>(wanted.threads));
  train_and_show(wanted, asked_data_dir, run, arguments, extras);
}

void train_as_asked(TrainArguments& arguments, const SettingFlags<TrainSettings>& flags) {
  const InterruptGuard interrupts;
  const BrokenPipeGuard broken_pipes;
  distributed::Communicator& ranks = distributed::open_ranks();
  arguments.extras.ranks = ranks;
  const auto watch = watch_for_dead_ranks(ranks);
  if (ranks.rank() > 0)
    follow_ranks(ranks);
  else if (arguments.extras.resume)
    train_on(arguments, flags);
  else
    train_new(arguments, flags);
}

/// Adds the flags that only --help-all shows. Returns --profile.
Flag add_rare_flags(Command& command, TrainArguments& arguments, std::string& trace) {
  const auto add = [&](Flag flag) {
    command.keep_for_help_all(flag.heading(kRunHeading));
    return flag;
  };
  add(command.option("--config", arguments.config,
                     "a JSON file with settings, as a run's config.json; flags win over it"));
  add(command.option("--stop-at", arguments.extras.stop_at, "end after this step, to be resumed later")
          .in_range(std::int64_t{1}, kMostSteps));
  add(command.flag("--verbose", arguments.verbose,
                   "print the rewrite's report, the plan's memory and every name of --init-checkpoint"));
  return add(
      command
          .option(
              "--profile", trace,
              "print where the time of the steps went, by node, op and phase, beside what this machine allows, and which layers of a quantized run multiply integers, and write the last 10 steps as a Chrome trace to FILE; without FILE to trace.json in the run directory")
          .takes(0, 1)
          .value_name("[FILE]")
          .shown_default(""));
}

}  // namespace

void add_train(CommandLine& program) {
  Command command = program.command("train", "Train a model, in float or with simulated quantization");
  const auto arguments = std::make_shared<TrainArguments>();
  const auto flags =
      std::make_shared<SettingFlags<TrainSettings>>(command, kRunHeading, FlagChanges{.groups = groups_of_training()});
  command.option("--out", arguments->out, "the run directory; default: runs/<model>-<data set>-<bits>-seed<n>")
      .heading(kRunHeading);
  command
      .flag("--resume", arguments->extras.resume, "continue the run in --out; a larger --epochs or --steps extends it")
      .heading(kRunHeading);
  command.flag("--overwrite", arguments->overwrite, "delete the run in --out, and begin a new one")
      .heading(kRunHeading);
  const auto trace = std::make_shared<std::string>();
  const Flag profile = add_rare_flags(command, *arguments, *trace);
  command.action([arguments, flags, profile, trace] {
    if (profile.was_given()) arguments->profile = checked_trace_path(*trace);
    train_as_asked(*arguments, *flags);
  });
}

}  // namespace miniqat::cli
