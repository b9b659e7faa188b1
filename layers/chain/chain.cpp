#include "layers/chain/chain.h"

#include <cmath>
#include <cstring>

#include "core/graph/op_interfaces.h"
#include "core/threads/parallel.h"
#include "layers/chain/chain_kernels.h"
#include "layers/kernels/masks.h"

namespace miniqat::layers {
namespace {

/// Whether backward has to know where gradients pass.
bool blocks_gradients(const ChainParts& parts) { return parts.clamps || parts.quantizer != nullptr; }

}  // namespace

std::vector<TensorSpec> Chain::infer(std::span<const TensorSpec> inputs) const {
  std::vector<TensorSpec> outputs = {inputs[0]};
  if (parts_.pool) {
    const Shape& x = inputs[0].shape;
    outputs = {{Shape{x[0], x[1] / parts_.pool->window[0], x[2] / parts_.pool->window[1], x[3]}}};
  }
  if (parts_.normalises()) outputs.resize(3, {Shape{inputs[0].shape.channels()}});
  return outputs;
}

OpTraits Chain::traits() const {
  OpTraits traits;
  traits.forward_in_place = !parts_.pool && !parts_.needs_input();
  traits.backward_in_place = !parts_.pool;
  if (parts_.needs_input()) traits.backward_inputs = {0};
  for (const int i : {parts_.scale_input, parts_.second_scale_input})
    if (i >= 0) traits.backward_inputs.push_back(i);
  if (parts_.normalises()) {
    const int at = parts_.norm->input;
    traits.backward_inputs.push_back(at);
    traits.no_gradient = {at + 2, at + 3};
    if (parts_.norm->attributes.is_training) traits.updated_inputs = {at + 2, at + 3};
    traits.optional_outputs = {1, 2};
  }
  if (parts_.quantizer != nullptr)
    for (const int i : {parts_.range_input, parts_.range_input + 1}) {
      (parts_.trains_range() ? traits.backward_inputs : traits.no_gradient).push_back(i);
      if (parts_.observes_range()) traits.updated_inputs.push_back(i);
    }
  traits.state = parts_.state;
  traits.delays = parts_.delays;
  return traits;
}

/// 0: the mask, or with a pool the winning taps. 1, with a trained range: rounding_codes, as bytes. Last, with a batch
/// norm: its x's mean and 1 / sigma, one after the other.
std::vector<TensorSpec> Chain::saved(std::span<const TensorSpec> inputs) const {
  std::vector<TensorSpec> specs;
  const Shape& x = inputs[0].shape;
  if (parts_.pool)
    specs.push_back({infer(inputs)[0].shape, DType::kUInt8});
  else if (blocks_gradients(parts_))
    specs.push_back({Shape{mask_words(x.elements())}, DType::kInt32});
  if (parts_.trains_range())
    specs.push_back({Shape{infer(inputs)[0].shape.elements(), sizeof(std::int16_t)}, DType::kUInt8});
  if (parts_.normalises()) specs.push_back({Shape{2, x.channels()}});
  return specs;
}

/// The bytes, and then scale and zero point.
std::optional<TensorSpec> Chain::packed_output(std::span<const TensorSpec> inputs, const Phase& phase) const {
  if (!parts_.quantizes(phase) || !parts_.quantizer->fits_bytes()) return std::nullopt;
  return TensorSpec{Shape{infer(inputs)[0].shape.elements() + static_cast<std::int64_t>(sizeof(PackedGrid))},
                    DType::kUInt8};
}

void Chain::unpack(const ForwardContext& context) const {
  Tensor& y = context.output(0);
  const std::uint8_t* codes = context.packed->data<std::uint8_t>();
  PackedGrid grid;
  std::memcpy(&grid, codes + y.elements(), sizeof grid);
  parallel_for(y.elements(), kPointwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    unpack_bytes(codes + begin, end - begin, grid.scale, grid.zero_point, y.data<float>() + begin);
  });
}

ChainRange ChainParts::stored_range(const ForwardContext& context) const {
  const auto at = [](auto& end) { return end.template data<float>(); };
  ChainRange range{.min = *at(context.input(range_input)), .max = *at(context.input(range_input + 1))};
  if (observes_range() && context.training) {
    range.new_min = at(*context.update_of(range_input));
    range.new_max = at(*context.update_of(range_input + 1));
  }
  if (!context.state.empty()) range.state = at(*context.state[0]);
  return range;
}

std::size_t Chain::observations(std::span<const TensorSpec> inputs, const Phase& phase) const {
  if (inputs[0].shape.elements() == 0) return 0;
  const std::size_t of_norm = parts_.uses_batch(phase) ? static_cast<std::size_t>(inputs[0].shape.channels()) : 0;
  return of_norm + (parts_.observes_range() && phase.training ? 1 : 0);
}

void Chain::store_observed(const ForwardContext& context, Backend) const {
  std::span<const ShardStatistic> observed = context.observed;
  if (parts_.observes_range() && context.training) {
    const ShardStatistic& range = observed.back();
    const ObservedRange of_batch = {
        .least = static_cast<float>(range.a), .largest = static_cast<float>(range.b), .has_nan = std::isnan(range.a)};
    parts_.quantizer->grid(parts_.stored_range(context), &of_batch);
    observed = observed.first(observed.size() - 1);
  }
  if (parts_.uses_batch(context)) store_moments(*parts_.norm, context, observed);
}

bool Chain::updates(int input, const Phase& phase) const {
  const bool of_norm = parts_.normalises() && (input == parts_.norm->input + 2 || input == parts_.norm->input + 3);
  return !of_norm || parts_.norm->attributes.uses_batch(phase);
}

}  // namespace miniqat::layers
