#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quantize/calibrate/adaptive_rounding.h"
#include "quantize/calibrate/bias_correction.h"
#include "quantize/calibrate/calibrate.h"
#include "quantize/calibrate/equalize.h"
#include "training/evaluate/part_results.h"
#include "training/run/data_of_run.h"
#include "training/run/run_directory.h"
#include "training/run_observer.h"
#include "training/settings/rewrite_settings.h"
#include "training/settings/train_settings.h"

namespace miniqat::training {

/// Which integer a weight becomes.
enum class Rounding {
  kNearest,
  /// One of the two next to it, for the least error of the layer's output.
  kAdaptive,
};

/// "nearest" and "adaptive", in this order.
std::span<const std::string_view> names_of(Rounding);

/// The settings behind the ranges and the weights; kept in summary.json.
struct CalibrateSettings {
  quantize::CalibrationMethod method = quantize::CalibrationMethod::kMse;
  double percentile = 99.99;
  std::int64_t batches = 32;
  std::int64_t seed = 1;
  bool equalize = false;
  Rounding rounding = Rounding::kNearest;
  bool bias_correction = false;

  static const auto& table() {
    using S = CalibrateSettings;
    static const std::tuple kTable{
        Setting(
            "method", &S::method,
            "ranges of activations: minmax; moving-average, as in training; percentile; mse, the range of least squared error, for weights, too"),
        Setting("percentile", &S::percentile, "with percentile: 99.99 leaves out 0.01% of the values at each end"),
        Setting("batches", &S::batches, "batches of training pictures to look at, of the run's batch size",
                at_least(1)),
        Setting("seed", &S::seed, "chooses the pictures", not_negative()),
        Setting("equalize", &S::equalize,
                "first give the channels between two layers the same range of weights (cross-layer equalization)"),
        Setting(
            "rounding", &S::rounding,
            "rounding of weights: nearest, to the nearest integer; adaptive, up or down, whichever keeps the output of the layer closer"),
        Setting("bias_correction", &S::bias_correction,
                "at the end subtract the mean error of each layer's output from its bias")};
    return kTable;
  }
  template <class Visitor>
  static void visit(Visitor&& visitor) {
    visit_table(table(), visitor);
  }
};

/// Throws UsageError naming the first setting that is out of range.
void check(const CalibrateSettings& settings);

struct CalibrationRequest {
  /// The directory of a float run; "" with `model`.
  std::string run;
  CalibrateSettings calibrate = {};
  RewriteSettings rewrite = {};
  /// The new run's, in which it is measured. (`miniqat calibrate` has no flag for it.)
  Arithmetic arithmetic = Arithmetic::kInteger;
  /// The run's own when "".
  std::string dataset = {};
  std::string data_dir = {};
  /// Whether broken files of `dataset` are skipped, if the run did not ask for it.
  bool skip_broken = false;
  /// 0: default_thread_count().
  int threads = 0;
  /// The run's own when none: for a float run without a validation part.
  std::optional<ValidationPart> validation = {};
  /// Resolved settings of read_float_model(), which then is quantized instead of a run. `dataset` and `data_dir` are
  /// theirs.
  std::optional<TrainSettings> model = {};
};

/// What came of it.
struct Calibrated {
  /// On the validation part of a run that has one, otherwise on the test pictures.
  Evaluation in_float;
  /// On both, where there is a validation part.
  PartResults quantized;
  std::vector<quantize::CalibratedRange> ranges;
  /// Where CalibrateSettings ask for them.
  std::optional<quantize::Equalization> equalization;
  std::optional<quantize::AdaptiveRounding> rounding;
  std::optional<quantize::BiasCorrection> bias_correction;
  double seconds = 0;
};

/// Quantizes a float run, or an ONNX model, without training: rewrites its graphs, finds the ranges from some batches
/// of training pictures and writes the result to `out`, a locked directory, as a run that is complete. Sets the number
/// of threads. Throws UsageError and Error for what cannot be calibrated, and Stopped where the observer wants it;
/// `out` then holds no run.
Calibrated calibrate(const CalibrationRequest& request, const RunDirectory& out, RunObserver& observer);

}  // namespace miniqat::training
