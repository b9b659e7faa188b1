#include "layers/chain/chain.h"

#include "core/tensors/eigen.h"
#include "layers/chain/chain_kernels.h"
#include "layers/kernels/masks.h"

namespace miniqat::layers {

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
  if (parts_.rounds_again())
    for (const int i : {parts_.bias_input, parts_.addend_input})
      if (i >= 0) traits.backward_inputs.push_back(i);
  for (const int i : {parts_.scale_input, parts_.second_scale_input})
    if (i >= 0) traits.backward_inputs.push_back(i);
  if (parts_.normalises()) {
    const int at = parts_.norm->input;
    traits.backward_inputs.insert(traits.backward_inputs.end(), {at, at + 1});
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

/// 0: the mask, or with a pool the winning taps. 1, if it keeps roundings: rounding_codes, as bytes. Last, with a batch
/// norm: its x's mean and 1 / sigma, one after the other.
std::vector<TensorSpec> Chain::saved(std::span<const TensorSpec> inputs) const {
  std::vector<TensorSpec> specs;
  const Shape& x = inputs[0].shape;
  if (parts_.pool)
    specs.push_back({infer(inputs)[0].shape, DType::kUInt8});
  else if (parts_.clamps || parts_.quantizer != nullptr)
    specs.push_back({Shape{mask_words(x.elements())}, DType::kInt32});
  if (parts_.keeps_rounding())
    specs.push_back({Shape{infer(inputs)[0].shape.elements(), sizeof(std::int16_t)}, DType::kUInt8});
  if (parts_.normalises()) specs.push_back({Shape{2, x.channels()}});
  return specs;
}

std::optional<PackedForm> Chain::packed_output(std::span<const TensorSpec> inputs, const Phase& phase) const {
  if (!parts_.quantizes(phase)) return std::nullopt;
  std::optional<PackedForm> form = parts_.quantizer->packed_form();
  if (form) form->elements = infer(inputs)[0].shape.elements();
  return form;
}

ChainMap ChainParts::map(const ForwardContext& context, const std::optional<ChainMap>& norm,
                         ScratchScope& scope) const {
  const std::int64_t channels = has_vectors() ? context.input(0).shape().channels() : 1;
  const auto row = [&](const auto& formula) {
    VectorMap<float> values = vector_of(scope.take<float>(channels));
    values = formula;
    return ChannelRow(scope, {values.data(), static_cast<std::size_t>(channels)}).data();
  };
  const auto factor = [&](int input) {
    return input < 0 ? vector_of(std::span<const float>(scope.filled<float>(channels, 1.0f)))
                     : vector_of<float>(context.input(input));
  };
  ChainMap map = norm.value_or(ChainMap{.width = ChannelRow::width(channels)});
  if (!norm && scale_input >= 0) {
    map.shift = row(Eigen::ArrayXf::Zero(channels));
    map.scale = row(factor(scale_input) * factor(second_scale_input));
    map.offset = row(Eigen::ArrayXf::Zero(channels));
  }
  if (bias_input >= 0) map.offset = row(vector_of<float>(context.input(bias_input)));
  map.low = low;
  map.high = high;
  return map;
}

const float* ChainParts::addend(const ForwardContext& context) const {
  return addend_input < 0 ? nullptr : context.input(addend_input).data<float>();
}

Range<float> ChainParts::range(const ForwardContext& context) const {
  return {*context.input(range_input).data<float>(), *context.input(range_input + 1).data<float>()};
}

std::size_t Chain::observations(std::span<const TensorSpec> inputs, const Phase& phase) const {
  if (inputs[0].shape.elements() == 0) return 0;
  const std::size_t of_norm = parts_.uses_batch(phase) ? static_cast<std::size_t>(inputs[0].shape.channels()) : 0;
  return of_norm + (parts_.observes_range() && phase.training ? 1 : 0);
}

void Chain::store_observed(const ForwardContext& context, Backend) const {
  std::span<const ShardStatistic> observed = context.observed;
  if (parts_.observes_range() && context.training) {
    Range<float> range;
    Observation<float> of_batch = observation_of<float>(observed.last(1), {&range, 1});
    parts_.quantizer->stage_range(context, parts_.range_input, of_batch);
    observed = observed.first(observed.size() - 1);
  }
  if (parts_.uses_batch(context)) store_moments(*parts_.norm, context, observed);
}

bool Chain::updates(int input, const Phase& phase) const {
  const bool of_norm = parts_.normalises() && (input == parts_.norm->input + 2 || input == parts_.norm->input + 3);
  return !of_norm || parts_.norm->attributes.uses_batch(phase);
}

}  // namespace miniqat::layers
