#include "tests/exporters/tflite/tflite_models.h"

#include <algorithm>

namespace miniqat::testing {

using integer::AveragePool;
using integer::Layer;
using integer::MaxPool;
using integer::Model;
using integer::Operation;

Model with_scales_per_tensor(Model model) {
  for (Operation& operation : model.operations)
    if (auto* layer = std::get_if<Layer>(&operation.action)) {
      layer->weight_scales.resize(1);
      layer->weight_zero_points.resize(1);
      layer->multipliers.resize(1);
    }
  model.check();
  return model;
}

Model with_symmetric_weights(Model model) {
  for (Operation& operation : model.operations)
    if (auto* layer = std::get_if<Layer>(&operation.action))
      for (std::int32_t& zero_point : layer->weight_zero_points) zero_point = 1 << (layer->weight_bits - 1);
  model.check();
  return model;
}

Model with_int4_weights(Model model) {
  constexpr int kBits = 4;
  for (Operation& operation : model.operations) {
    auto* layer = std::get_if<Layer>(&operation.action);
    if (layer == nullptr) continue;
    // The units of the sums, and so the multipliers, stay.
    const std::vector<float> units = layer->unit_scales();
    cut_weights(*layer, kBits);
    for (std::size_t i = 0; i < units.size(); ++i)
      layer->weight_scales[i] = units[i] * static_cast<float>(1 << layer->weight_shift());
    for (std::uint8_t& weight : layer->weights) weight = std::max<std::uint8_t>(weight, 1);
  }
  return with_symmetric_weights(std::move(model));
}

Model with_wider_padding(Model model, std::int64_t border) {
  Operation& operation = model.operations.back();
  miniqat::Window2d* window = nullptr;
  if (auto* layer = std::get_if<Layer>(&operation.action)) window = &layer->window;
  if (auto* pool = std::get_if<MaxPool>(&operation.action)) window = &pool->window;
  if (auto* pool = std::get_if<AveragePool>(&operation.action)) window = &pool->window;
  const auto widen = [border](miniqat::WindowAxis& axis) {
    axis.pad_before += border;
    axis.pad_after += border;
    const std::int64_t span = (axis.window - 1) * axis.dilation + 1;
    axis.output = (axis.input + axis.pad_before + axis.pad_after - span) / axis.stride + 1;
  };
  widen(window->rows);
  widen(window->columns);
  Shape& shape = model.tensors[operation.output].shape;
  shape = {window->rows.output, window->columns.output, shape[2]};
  model.check();
  return model;
}

}  // namespace miniqat::testing
