#include "integer/model.h"

#include "integer/packing.h"

namespace miniqat::integer {
namespace {

constexpr std::array<std::string_view, std::variant_size_v<Action>> kTypeNames = {
    "Layer", "Add", "Mul", "Rescale", "Concat", "AveragePool", "MaxPool", "Reshape", "Pad", "Lookup", "Slice"};

std::int64_t output_pixels(const Window2d& window) { return window.rows.output * window.columns.output; }

}  // namespace

std::string_view type_name(const Action& action) {
  if (const auto* layer = std::get_if<Layer>(&action)) return kLayerKindNames[static_cast<std::size_t>(layer->kind)];
  return kTypeNames[action.index()];
}

std::vector<float> Layer::unit_scales() const {
  std::vector<float> scales = weight_scales;
  for (float& scale : scales) scale /= static_cast<float>(1 << weight_shift());
  return scales;
}

std::int64_t Model::weight_bytes() const {
  std::int64_t bytes = 0;
  for (const Operation& operation : operations)
    if (const auto* layer = std::get_if<Layer>(&operation.action))
      bytes += packed_size(layer->filter.elements(), layer->weight_bits);
  return bytes;
}

std::int64_t Model::multiply_adds() const {
  std::int64_t sum = 0;
  for (const Operation& operation : operations)
    if (const auto* layer = std::get_if<Layer>(&operation.action))
      sum += layer->filter.elements() * output_pixels(layer->window);
  return sum;
}

}  // namespace miniqat::integer
