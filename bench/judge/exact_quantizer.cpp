// FakeQuant: a value within rounding distance of a tie may go either way, and nothing else may differ by a step.

#include <algorithm>
#include <cmath>
#include <optional>

#include "bench/judge/exact_op.h"
#include "layers/chain/chain_kernels.h"
#include "quantize/affine.h"
#include "quantize/fake_quant.h"

namespace miniqat::bench {

using namespace quantize;
namespace {

double largest(const Tensor& tensor) {
  double most = 0;
  if (tensor.defined())
    for (const double value : tensor.values<double>()) most = std::max(most, value);
  return most;
}

/// A channel's grid, and what roundings of its range do to it.
struct UncertainGrid {
  Affine<double> grid;
  /// How far the grid's places may have moved, relative to their distance from zero.
  double stretch = 0;
  /// The zero point itself lies on a tie.
  bool shifts = false;
  /// Where the scale is a power of two: the grid with the next one, if the range lies at the end of an octave.
  std::optional<Affine<double>> other = {};

  /// The distance by which an end may lie elsewhere on the other grid.
  double end_distance() const {
    if (!other) return 0;
    return std::max(std::abs(other->nudged_min - grid.nudged_min), std::abs(other->nudged_max - grid.nudged_max));
  }
  /// How far a value near `value` may end from y.
  double distance(double y, double value, double reach) const {
    const auto on = [&](const Affine<double>& one) {
      return std::max(std::abs(fake_quantize(one, value + reach) - y), std::abs(y - fake_quantize(one, value - reach)));
    };
    return other ? std::max(on(grid), on(*other)) : on(grid);
  }
};

UncertainGrid uncertain_grid(Range<double> range, double range_error, const GridOptions& options) {
  // An end at 0 is there to the bit.
  const auto grid_at = [&](double low, double high) {
    return grid_of<double>({range.min == 0 ? 0 : range.min + low, range.max == 0 ? 0 : range.max + high}, options);
  };
  UncertainGrid result{.grid = grid_at(0, 0)};
  const double width = result.grid.nudged_max - result.grid.nudged_min;
  const double e = range_error + 2 * kRounding * std::max(std::abs(range.min), std::abs(range.max));
  if (width > 0) result.stretch = 4 * e / width + 4 * kRounding;
  for (const double low : {-e, e})
    for (const double high : {-e, e}) {
      const Affine<double> moved = grid_at(low, high);
      result.shifts = result.shifts || moved.zero_point != result.grid.zero_point;
      if (options.power_of_two && moved.scale != result.grid.scale) result.other = moved;
    }
  return result;
}

}  // namespace

void ExactOp::bound_quantizer() {
  const auto& attributes = *op_.as<FakeQuant>();
  const Bounded& x = inputs_[0];
  Tensor error(x.value.shape(), DType::kFloat64), disorder(x.value.shape(), DType::kFloat64);
  reach_ = Tensor(x.value.shape(), DType::kFloat64);
  const bool observes = !exact_.updates.empty();
  const Tensor& min = observes ? exact_.updates[0] : inputs_[1].value;
  const Tensor& max = observes ? exact_.updates[1] : inputs_[2].value;
  // Symmetric ranges take the other end's error, stretched.
  double range_error = 2 * largest(x.error);
  if (observes)
    for (std::size_t k = 0; k < 2; ++k) {
      updates_[k].error = magnitude_of(updates_[k].value, {});
      for (double& e : updates_[k].error.values<double>()) e = 4 * kRounding * e + range_error + kTiny;
    }
  if (!attributes.quantizes(settings_.phase.quantization_step)) {
    outputs_[0].error = x.error;
    outputs_[0].disorder = x.disorder;
    return;
  }
  const GridOptions options = attributes.grid_options();
  const std::int64_t channels = min.elements();
  for (std::int64_t c = 0; c < channels; ++c) {
    const Range<double> range = {min.data<double>()[c], max.data<double>()[c]};
    const double rounded = observes || attributes.symmetric ? 4 * kRounding * std::max(-range.min, range.max) : 0;
    const UncertainGrid uncertain = uncertain_grid(range, range_error + std::max(rounded, 0.0), options);
    const Affine<double>& grid = uncertain.grid;
    const double ends = std::max(std::abs(grid.nudged_min), std::abs(grid.nudged_max));
    for (std::int64_t i = c; i < x.value.elements(); i += channels) {
      const double value = x.value.data<double>()[i], y = outputs_[0].value.data<double>()[i];
      const double reach =
          error_at(x.error, i) + (uncertain.stretch + 4 * kRounding) * (std::min(std::abs(value), 2 * ends) + ends);
      const double steps = uncertain.distance(y, value, reach) + (uncertain.shifts ? grid.scale : 0);
      reach_.data<double>()[i] = reach + uncertain.end_distance() + (uncertain.shifts ? grid.scale : 0);
      disorder.data<double>()[i] = steps;
      error.data<double>()[i] = steps + (uncertain.stretch + 4 * kRounding) * (std::abs(y) + steps) + kTiny;
    }
  }
  outputs_[0].error = error;
  outputs_[0].disorder = disorder;
}

std::vector<Bounded> ExactOp::quantizer_backward(const std::vector<Bounded>& d_outputs,
                                                 const std::vector<bool>& wanted) const {
  const Bounded& d_y = d_outputs[0];
  const std::vector<Tensor> exact = backward(exact_, {d_y.value}, wanted);
  std::vector<Bounded> result(exact.size());
  for (std::size_t k = 0; k < exact.size(); ++k) result[k].value = exact[k];
  const auto& attributes = *op_.as<FakeQuant>();
  if (!attributes.quantizes(settings_.phase.quantization_step)) {
    if (wanted[0]) result[0].error = d_y.error;
    return result;
  }
  const GridOptions options = attributes.grid_options();
  const bool observes = !exact_.updates.empty();
  const Tensor& min = observes ? exact_.updates[0] : inputs_[1].value;
  const Tensor& max = observes ? exact_.updates[1] : inputs_[2].value;
  for (std::size_t k = 0; k < exact.size(); ++k)
    if (exact[k].defined()) result[k].error = Tensor(exact[k].shape(), DType::kFloat64);
  const std::int64_t channels = min.elements();
  for (std::int64_t i = 0; i < d_y.value.elements(); ++i) {
    const std::int64_t c = i % channels;
    const Affine<double> grid = grid_of<double>({min.data<double>()[c], max.data<double>()[c]}, options);
    const double x = inputs_[0].value.data<double>()[i], reach = reach_.data<double>()[i];
    const double arriving = std::abs(d_y.value.data<double>()[i]) + error_at(d_y.error, i);
    const bool uncertain = std::abs(x - grid.nudged_min) <= reach || std::abs(x - grid.nudged_max) <= reach;
    const bool passes = gradient_passes(grid, x);
    if (result[0].error.defined())
      result[0].error.data<double>()[i] = uncertain ? arriving : passes ? error_at(d_y.error, i) : 0;
    const double terms = static_cast<double>(d_y.value.elements() / channels);
    double of_ends = (uncertain ? arriving : error_at(d_y.error, i)) + (terms + 4) * kRounding * arriving;
    if (traits_of(attributes.range).learned && !grid.empty()) {
      // dy * (y - x) / width, with y - x at most half a step.
      const double width = grid.nudged_max - grid.nudged_min;
      // A chain keeps y - x in 16 bits.
      const double kept = grid.scale / (2 * layers::kRoundingCodes);
      const double moved = error_at(outputs_[0].error, i) + error_at(inputs_[0].error, i) + reach + kept;
      of_ends += (arriving * moved + (uncertain ? arriving : error_at(d_y.error, i)) * grid.scale) / width;
      // Half of the derivative after a symmetric width, over the shorter end.
      if (attributes.symmetric) of_ends *= 2;
    }
    for (const std::size_t k : {std::size_t{1}, std::size_t{2}})
      if (result[k].error.defined()) result[k].error.data<double>()[c] += of_ends;
  }
  return result;
}

}  // namespace miniqat::bench
