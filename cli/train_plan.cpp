#include "cli/train_plan.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <system_error>
#include <vector>

#include "cli/display/terminal_width.h"
#include "cli/display/wrapped_text.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "training/listing/run_list.h"
#include "training/run/run_directory.h"
#include "training/settings/settings.h"

namespace miniqat::cli {

using namespace training;

namespace fs = std::filesystem;

namespace {

/// Where the shorter first command puts its run: the default folder is the whole training's.
constexpr const char* kFirstRun = "runs/first";

struct Estimate {
  double seconds = 0;
  std::string run;
};

std::string length_text(double seconds) {
  constexpr double kMinute = 60, kHour = 3600;
  if (seconds < 2 * kMinute) return counted(std::max(std::lround(seconds), 1L), "second");
  return seconds < 2 * kHour ? concat(std::lround(seconds / kMinute), " minutes")
                             : concat(std::lround(seconds / kHour), " hours");
}

/// A run whose settings differ in nothing but the number of epochs, the seed and what it logs and saves.
bool has_the_same_epochs(const TrainSettings& settings, TrainSettings other) {
  if (other.steps > 0) return false;
  other.epochs = settings.epochs;
  other.seed = settings.seed;
  other.log_every = settings.log_every;
  other.save_every = settings.save_every;
  return settings_to_json(other) == settings_to_json(settings);
}

std::optional<Estimate> estimate_of(const TrainSettings& settings, const ListedRun& run) {
  if (!run.complete || !run.seconds) return {};
  const fs::path config = RunDirectory::open(run.path).config();
  const TrainSettings other = recorded_settings(read_json(config), config.string());
  if (!has_the_same_epochs(settings, other)) return {};
  return Estimate{.seconds = *run.seconds * static_cast<double>(settings.epochs) / static_cast<double>(other.epochs),
                  .run = run.path.string()};
}

/// By the newest run that tells it.
std::optional<Estimate> known_length(const TrainSettings& settings) {
  std::error_code failure;
  if (!fs::is_directory("runs", failure)) return {};
  try {
    const std::vector<ListedRun> runs = list_runs("runs");
    for (auto run = runs.rbegin(); run != runs.rend(); ++run)
      if (const std::optional<Estimate> estimate = estimate_of(settings, *run)) return estimate;
  } catch (const Error&) {
    // A run that cannot be read tells nothing.
  }
  return {};
}

}  // namespace

std::string plan_of_defaults(const TrainSettings& settings, const fs::path& out) {
  const std::optional<Estimate> known = known_length(settings);
  std::string text = concat("No settings are given: this trains ", settings.model, " on ", settings.dataset,
                            settings.dataset == "synthetic" ? " (digits that miniqat draws)" : "", ", with ",
                            settings.rewrite.weight_bits, "-bit weights and ", settings.rewrite.activation_bits,
                            "-bit activations, for ", settings.epochs, settings.epochs == 1 ? " epoch" : " epochs",
                            ", into ", printable(out.string()), ".\n");
  text += known ? concat("It takes about ", length_text(known->seconds), ", as ", printable(known->run), " tells")
                : std::string("How long it takes is told beside its first steps");
  text += "; after Ctrl-C, train --resume goes on.";
  text = joined(wrapped(text, text_columns()), "\n") + "\n";
  std::error_code failure;
  if (!fs::exists(kFirstRun, failure))
    text += concat("A shorter first command: miniqat train --epochs 1 --out ", kFirstRun, "\n");
  return text + "\n";
}

}  // namespace miniqat::cli
