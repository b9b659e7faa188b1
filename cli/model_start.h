#pragma once

#include <array>
#include <string>

#include "core/error.h"
#include "training/settings/settings.h"
#include "training/settings/train_settings.h"
#include "training/settings/usage_error.h"

namespace miniqat::cli {

/// Settings that a float run has already: their flags go with --model.
inline constexpr std::array<const char*, 4> kPictureSettings = {"image_size", "colour", "mean", "std"};

/// Throws UsageError unless there is a run or a --model, and not both, and for flags that need --model. `flags`:
/// SettingFlags with "model" and kPictureSettings.
template <class Flags>
void require_run_or_model(const std::string& run, const Flags& flags) {
  using training::UsageError;
  const bool has_model = flags.was_given("model");
  if (run.empty() && !has_model)
    throw UsageError(
        "--run is required: RUN or --run RUN, the directory of a float run; or --model MODEL.onnx with --dataset");
  if (!run.empty() && has_model) throw UsageError("give a float run or --model, not both");
  for (const char* setting : kPictureSettings)
    if (!has_model && flags.was_given(setting))
      throw UsageError(concat(training::flag_of(setting), " goes with --model: a float run has its own"));
}

/// Settles the settings of an ONNX model that is quantized as it is: `settings` have what the flags say. Prints a note
/// on a batch size that the model fixes, unless `batch_given`. Throws UsageError for a model without weights, for a
/// missing data set and for what check() refuses.
void settle_model(training::TrainSettings& settings, bool dataset_given, bool batch_given);

}  // namespace miniqat::cli
