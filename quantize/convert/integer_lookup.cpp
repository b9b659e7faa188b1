#include "quantize/convert/integer_lookup.h"

#include <algorithm>
#include <cmath>

#include "core/graph/op_queries.h"
#include "core/text/error.h"

namespace miniqat::quantize {

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
