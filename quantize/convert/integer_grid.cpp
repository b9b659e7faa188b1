#include "quantize/convert/integer_grid.h"

#include <algorithm>
#include <cmath>

#include "core/graph/op_queries.h"
#include "core/text/error.h"
#include "quantize/fake_quant.h"

namespace miniqat::quantize {
namespace {

constexpr int kMostIntegerBits = 8;

std::int32_t integer_for(const Affine<float>& affine, float real) {
  return static_cast<std::int32_t>(quantize(affine, real));
}

}  // namespace

Target whole(const integer::Grid& grid) {
  Affine<float> affine = {.scale = grid.scale,
                          .zero_point = static_cast<float>(grid.zero_point),
                          .quant_min = 0,
                          .quant_max = static_cast<float>(grid.quant_max())};
  affine.nudged_min = dequantize(affine, affine.quant_min);
  affine.nudged_max = dequantize(affine, affine.quant_max);
  return {.grid = grid, .clamp = {0, grid.quant_max()}, .affine = affine};
}

Target narrowed(Target target, Range<float> range) {
  const integer::Clamp whole = target.clamp;
  const auto end = [&](float real) { return std::clamp(integer_for(target.affine, real), whole.min, whole.max); };
  if (std::isfinite(range.min)) target.clamp.min = end(range.min);
  if (std::isfinite(range.max)) target.clamp.max = end(range.max);
  return target;
}

std::vector<Affine<float>> grids_of(const Node& quantizer, const Tensor& min, const Tensor& max) {
  const FakeQuantAttributes& attributes = *quantizer.as<FakeQuant>();
  if (attributes.is_training) fail(describe(quantizer), " is one for training: convert the evaluation graph");
  if (attributes.bits > kMostIntegerBits)
    fail(describe(quantizer), " has ", attributes.bits, " bits; integer models hold 2 to ", kMostIntegerBits,
         ": train or calibrate with `weight_bits` and `activation_bits` of at most ", kMostIntegerBits);
  const GridOptions options = attributes.grid_options();
  std::vector<Affine<float>> grids;
  for (std::int64_t i = 0; i < min.elements(); ++i) {
    const Range<float> range = {min.data<float>()[i], max.data<float>()[i]};
    grids.push_back(grid_of(range, options));
    if (!std::isfinite(grids.back().scale))
      fail(describe(quantizer), " has a range that no grid fits: [", range.min, ", ", range.max, "]");
  }
  return grids;
}

Target activation_target(const Node& quantizer, const Tensor& min, const Tensor& max) {
  const FakeQuantAttributes& attributes = *quantizer.as<FakeQuant>();
  if (attributes.per_channel)
    fail(describe(quantizer), " has a range for each channel; only weights can have that in an integer model");
  const Affine<float> affine = grids_of(quantizer, min, max).front();
  const integer::Grid grid = {.scale = affine.scale,
                              .zero_point = static_cast<std::int32_t>(affine.zero_point),
                              .bits = static_cast<int>(attributes.bits)};
  const auto lowest = static_cast<std::int32_t>(affine.quant_min);
  const integer::Clamp clamp =
      affine.empty() ? integer::Clamp{grid.zero_point, grid.zero_point} : integer::Clamp{lowest, grid.quant_max()};
  return {.grid = grid, .clamp = clamp, .affine = affine};
}

std::vector<double> lookup_values(const Node& node, const integer::Grid& input) {
  const TensorSpec spec = {Shape{input.quant_max() + 1}, DType::kFloat64};
  Tensor x(spec);
  Tensor y(spec);
  for (std::int32_t q = 0; q <= input.quant_max(); ++q) x.data<double>()[q] = integer::dequantize(input, q);
  run_reference(node.op(), x, y);
  const std::span<const double> values = y.values<double>();
  for (std::size_t q = 0; q < values.size(); ++q)
    if (!std::isfinite(values[q]))
      fail(describe(node), " gives ", values[q], " for ", x.data<double>()[q], ", for which there is no integer");
  return {values.begin(), values.end()};
}

std::vector<std::uint8_t> lookup_table(std::span<const double> values, const Target& target) {
  std::vector<std::uint8_t> table;
  for (const double value : values) {
    const auto q = static_cast<std::int32_t>(quantize(target.affine, static_cast<float>(value)));
    table.push_back(static_cast<std::uint8_t>(std::clamp(q, target.clamp.min, target.clamp.max)));
  }
  return table;
}

}  // namespace miniqat::quantize
