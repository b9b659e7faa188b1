#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>

#include "training/calibrate/calibration.h"
#include "training/run/run_directory.h"
#include "training/run/run_source.h"
#include "training/settings/train_settings.h"

namespace miniqat::training {

/// Everything that decides what `miniqat quantize` computes; kept in quantize.json.
struct QuantizationPlan {
  /// The directory of a float run; "": the ONNX model in training.model with its weights.
  std::string run;
  /// model_hash() of that model, variables_hash() of the run's checkpoint; "" in a plan of an earlier version.
  std::string source_hash = {};
  CalibrateSettings calibrate = {};
  /// Settings of the training; both stages share its bits, data, validation part and threads.
  TrainSettings training = {};
};

/// The default settings of every training of `quantize`, for any float run: 5 epochs, a cosine, --ranges by-task.
TrainSettings usual_quantization();

/// Settings of the training that no flag changes beside a float run: it decides them, or the calibration.
const std::set<std::string>& settings_of_float_run();

/// What `quantize` takes from a float run when no flag says otherwise. complete() sets the learning rate and the
/// validation part.
TrainSettings quantization_defaults(const FloatRun& run);

/// The folding of weights of few bits behind batch norms, unless the flags in `given` say otherwise: a range for each
/// channel, and batch norms folded late or, where a layer has one range for all or scales are powers of two, `single`.
/// docs/low-bits.md has the measurements.
void choose_folding(RewriteSettings& settings, const FloatRun& run, const std::set<std::string>& given);

/// The default learning rate is this share of the float run's one or, of another optimizer, of that one's default; all
/// of it where some layer has weights or activations of 2 bits. docs/quantize.md has the measurements.
inline constexpr double kRateShare = 0.2;
/// The validation part of a float run without one: one in so many of the training pictures.
inline constexpr std::int64_t kValidationShare = 12;

/// Sets what is not decided yet: learning rate, validation part, threads, augmentation. Throws UsageError for a
/// validation part that is not the float run's, and for estimates where there is no batch norm.
void complete(TrainSettings& settings, const FloatRun& run);

/// Decides what is left open in a plan whose training has quantization_defaults(), with the settings in `given` over
/// them: the folding, sums, and what complete() sets. Throws UsageError for settings out of range, and what complete()
/// throws.
void settle(QuantizationPlan& plan, const FloatRun& source, const std::set<std::string>& given);

/// The float run of the plan, or its model. Throws what read_float_run() and read_float_model() throw, and Error for
/// one that has changed since the plan was made.
FloatRun float_source(const QuantizationPlan& plan);

/// Whether the float run has trained with the validation part, as far as is known: nobody knows it of a model.
bool has_seen_validation(const FloatRun& run);

/// A directory for a new run of `quantize`, locked. Throws Error where it holds something, unless it is to be
/// overwritten, and what RunDirectory::fresh() throws.
RunDirectory new_quantization(const std::filesystem::path& path, RunDirectory::Existing existing);
/// The directory of a run that goes on. Throws Error where there is none.
RunDirectory resumed_quantization(const std::filesystem::path& path);

/// The runs of the stages, in directories of their own within that of the whole.
std::filesystem::path calibrated_in(const RunDirectory& run);
std::filesystem::path trained_in(const RunDirectory& run);
/// The directory of the whole whose training `stage` is; none where it is a run by itself.
std::optional<std::filesystem::path> quantization_of_trained(const RunDirectory& stage);

/// The run in `folder`, locked, for a training that goes on. Throws UsageError with the way on where `quantize` or
/// `calibrate` made it, and what RunDirectory::resume() throws.
RunDirectory resumed_training(const std::filesystem::path& folder);
/// Throws UsageError where somebody gave a length (TrainSettings::given) to the training of a run of `quantize`, whose
/// table compares networks: a longer training would not fit it.
void require_own_length(const RunDirectory& run, const TrainSettings& wanted);

/// Removes what an earlier run has left, its stages included, then writes bits.json and quantize.json.
void write_plan(const QuantizationPlan& plan, const RunDirectory& run);
/// quantize.json of that plan, to which results may be added.
nlohmann::ordered_json plan_to_json(const QuantizationPlan& plan);
/// With its bits. Throws Error for a file that is none.
QuantizationPlan read_plan(const RunDirectory& run);
/// Whether the run has come to its end.
bool is_quantized(const RunDirectory& run);

}  // namespace miniqat::training
