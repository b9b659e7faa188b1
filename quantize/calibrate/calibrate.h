#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/session.h"
#include "quantize/affine.h"
#include "quantize/calibrate/float_network.h"
#include "quantize/fake_quant.h"

namespace miniqat::quantize {

/// How an activation's range comes from the values that the float network has there; docs/calibrate.md compares them.
enum class CalibrationMethod {
  /// Smallest and largest value of all batches.
  kMinMax,
  /// The zero-debiased moving average of the batches' smallest and largest values, as training has it (ema_decay).
  kMovingAverage,
  /// Leaves out the outermost values: see CalibrationOptions::percentile.
  kPercentile,
  /// The range whose grid has the least squared error (SquaredError).
  kMse,
};

/// "minmax", "moving-average", "percentile" and "mse", in this order.
std::span<const std::string_view> names_of(CalibrationMethod);

struct CalibrationOptions {
  CalibrationMethod method = CalibrationMethod::kMse;
  /// In (50, 100], for kPercentile: of all values, zeros included, 100 - percentile per cent are left out at each end.
  double percentile = 99.99;

  /// Throws Error naming the option that is out of range.
  void check() const;
};

/// What became of one quantizer.
struct CalibratedRange {
  std::string quantizer;
  FakeQuantAttributes attributes;
  bool is_weights = false;
  /// One for each channel, or a single one: what the values span, and the range that was set.
  std::vector<Range<float>> seen = {};
  std::vector<Range<float>> set = {};
};

/// Post-training quantization: sets the ranges of a graph that create_eval_graph rewrote for a trained float network.
///
///   Calibrator calibrator(session, {.method = CalibrationMethod::kMse});
///   for (...) calibrator.observe({{images, batch}});
///   calibrator.finish();
///
/// Activations are those of the float network, batch norms folded, no quantizer at work; so no range depends on
/// another. Weights have their range from their own values: the one of least squared error with kMse, else from the
/// smallest to the largest (a per cent of a filter's nine weights is none). Quantizers whose range is "fixed" stay
/// as they are.
class Calibrator {
 public:
  /// `session` holds the rewritten graph, which must stay as it is, and the float network's variables. Throws Error for
  /// options out of range, for a graph without quantizers to calibrate, and for weights that are not finite.
  Calibrator(Session& session, const CalibrationOptions& options);
  ~Calibrator();
  Calibrator(const Calibrator&) = delete;

  /// Runs one batch. The feeds are of the session's graph. Throws Error that names the quantizer where a value is not
  /// finite.
  void observe(const Feeds& feeds);

  /// Sets the session's ranges, and their counts of updates to the batches seen, so that training which goes on from
  /// here moves them as it would its own. In topological order. Throws Error when no batch was seen.
  std::vector<CalibratedRange> finish();

 private:
  struct Quantizer;

  void add(const Node& node);
  void observe(bool weights, const Feeds& feeds);
  void observe(Quantizer& quantizer, const Tensor& values);
  Range<float> range_of(const Quantizer& quantizer, std::size_t channel) const;
  void store(const CalibratedRange& range, const Quantizer& quantizer);

  Session& session_;
  const CalibrationOptions options_;
  FloatNetwork network_;
  /// In topological order.
  std::vector<Quantizer> quantizers_;
  std::int64_t batches_ = 0;
};

}  // namespace miniqat::quantize
