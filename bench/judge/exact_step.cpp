#include "bench/judge/exact_step.h"

#include <algorithm>
#include <cmath>

#include "core/graph/op_interfaces.h"
#include "core/kernels/packed.h"
#include "core/text/error.h"
#include "layers/reference/byte_gradient.h"

namespace miniqat::bench {
namespace {

bool holds(const std::vector<int>& list, std::size_t i) {
  return std::ranges::find(list, static_cast<int>(i)) != list.end();
}

void add_to(Bounded& sum, const Bounded& part) {
  if (!sum.value.defined()) {
    sum = part;
    return;
  }
  Tensor value = sum.value.clone();
  for (std::int64_t i = 0; i < value.elements(); ++i) value.data<double>()[i] += part.value.data<double>()[i];
  Tensor error(value.shape(), DType::kFloat64);
  for (std::int64_t i = 0; i < value.elements(); ++i)
    error.data<double>()[i] =
        error_at(sum.error, i) + error_at(part.error, i) +
        kRounding * (std::abs(sum.value.data<double>()[i]) + std::abs(part.value.data<double>()[i]));
  sum = {.value = value, .error = error, .disorder = {}};
}

}  // namespace

Tensor wide_copy(const Tensor& tensor) {
  return tensor.dtype() == DType::kFloat32 ? tensor.to(DType::kFloat64) : tensor.clone();
}

Tensor unpacked(const PackedForm& form, const Tensor& bytes, const Shape& shape) {
  Tensor numbers(shape);
  unpack(form, bytes, numbers.data<float>());
  return numbers;
}

std::vector<Tensor> inputs_of(const Plan::ForwardStep& step) {
  const ForwardContext& context = step.context;
  std::vector<Tensor> inputs;
  for (std::size_t k = 0; k < context.inputs.size(); ++k)
    inputs.push_back(context.packed_inputs.empty()
                         ? *context.inputs[k]
                         : unpacked(context.packed_forms[k], *context.packed_inputs[k], step.inputs[k].shape()));
  return inputs;
}

ExactStep::ExactStep(const Plan::ForwardStep& step) : step_(step) {
  for (const Tensor& input : inputs_of(step)) inputs_.push_back(wide_copy(input));
  updates_.resize(step.context.updates.size());
  state_.resize(step.context.state.size());
  for (std::size_t m = 0; m < step.members.size(); ++m) run_member(m);
}

int ExactStep::position_of(const Output& input) const {
  const auto found = std::ranges::find(step_.inputs, input);
  if (found == step_.inputs.end()) fail(describe(*step_.node), " runs without its input ", input.name());
  return static_cast<int>(found - step_.inputs.begin());
}

Bounded ExactStep::input_of(std::size_t m, std::size_t i) const {
  const Output& input = step_.member_inputs[m][i];
  if (const auto found = inside_.find(key(input)); found != inside_.end()) return found->second;
  // A node alone may take the same tensor twice.
  const std::size_t position = step_.members.size() == 1 ? i : static_cast<std::size_t>(position_of(input));
  return {.value = inputs_[position], .error = {}, .disorder = {}};
}

void ExactStep::run_member(std::size_t m) {
  const Node& node = *step_.members[m];
  const ForwardContext& context = step_.context;
  std::vector<Bounded> inputs;
  for (std::size_t i = 0; i < node.inputs().size(); ++i) inputs.push_back(input_of(m, i));
  ExactOp::Settings settings = {.phase = context, .random_key = context.random_key};
  // With a little for their product. Integers are no longer rounded.
  constexpr double kOneFactor = 1.01 * 0x1p-8;
  const bool packed = !context.packed_inputs.empty();
  if (context.rounding == FactorRounding::kAllToBfloat16 && !packed) settings.forward_rounding = 2 * kOneFactor;
  if (context.rounding == FactorRounding::kGradientsToBfloat16 || context.rounding == FactorRounding::kAllToBfloat16)
    settings.backward_rounding = (packed ? 1 : 2) * kOneFactor;
  std::vector<int> update_places;
  if (!context.updates.empty())
    for (const int i : node.op().traits().updated_inputs) {
      const int position = position_of(step_.member_inputs[m][i]);
      if (context.update_of(position) == nullptr) continue;
      settings.updated.push_back(i);
      update_places.push_back(position);
    }
  std::vector<std::size_t> state_places;
  const std::vector<OpState> states = state_of(*step_.op);
  for (const OpState& state : state_of(node.op()))
    for (std::size_t k = 0; k < states.size(); ++k)
      if (states[k].name == state.name) state_places.push_back(k);
  std::vector<Tensor> updates, state;
  for (const int i : update_places) updates.push_back(wide_copy(*context.update_of(i)));
  for (const std::size_t k : state_places) state.push_back(wide_copy(*context.state.at(k)));
  members_.push_back(std::make_unique<ExactOp>(node.op(), std::move(inputs), settings, updates, state));
  const ExactOp& exact = *members_.back();
  for (std::size_t k = 0; k < exact.outputs().size(); ++k) inside_[{&node, static_cast<int>(k)}] = exact.outputs()[k];
  for (std::size_t k = 0; k < update_places.size(); ++k) updates_[update_places[k]] = exact.updates()[k];
  for (std::size_t k = 0; k < state_places.size(); ++k) state_[state_places[k]] = exact.state()[k];
}

Bounded ExactStep::output(std::size_t k) const { return inside_.at(key(step_.outputs[k])); }
Bounded ExactStep::update(std::size_t k) const { return updates_[k]; }
Bounded ExactStep::state(std::size_t k) const { return state_[k]; }

std::vector<bool> ExactStep::wanted_of(std::size_t m, const std::vector<bool>& wanted) const {
  const std::vector<Output>& inputs = step_.member_inputs[m];
  const OpTraits traits = step_.members[m]->op().traits();
  std::vector<bool> result(inputs.size(), false);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (holds(traits.no_gradient, i) || inputs[i].spec().dtype != DType::kFloat32) continue;
    if (step_.members.size() == 1)
      result[i] = wanted[i];
    else if (is_inside(inputs[i]))
      result[i] = true;
    else
      for (std::size_t k = 0; k < step_.inputs.size(); ++k)
        result[i] = result[i] || (step_.inputs[k] == inputs[i] && wanted[k]);
  }
  return result;
}

/// The gradients of a layer that rounds its output's to bytes, one way for each of them: of the numbers that these
/// stand for.
std::vector<Bounded> ExactStep::bytes_backward(std::size_t m, const Bounded& arriving,
                                               const std::vector<bool>& wanted) const {
  const ForwardContext& context = step_.context;
  const Tensor d_y = arriving.value.to(DType::kFloat32);
  const std::int64_t pictures = d_y.shape()[0], n = d_y.elements(), of_picture = n / pictures;
  const PackedTensor filter = packed_tensor(context.packed_forms[1], *context.packed_inputs[1]);
  const auto columns = static_cast<std::size_t>(d_y.shape().channels());
  std::vector<float> scales(columns);
  std::vector<bool> only_zeros(columns, true);
  const auto grid_of = [&](std::size_t c) { return filter.grids[c % filter.grids.size()]; };
  for (std::size_t c = 0; c < columns; ++c) scales[c] = grid_of(c).scale;
  for (std::size_t i = 0; i < static_cast<std::size_t>(context.packed_forms[1].elements); ++i)
    if (static_cast<float>(filter.codes[i]) != grid_of(i % columns).zero_point) only_zeros[i % columns] = false;
  scales = layers::reference::gradient_scales(scales, only_zeros);
  const auto bytes = layers::reference::byte_gradient({d_y.data<float>(), static_cast<std::size_t>(n)}, pictures,
                                                      scales, context.random_key, context.slice * n);
  Tensor for_input(d_y.shape(), DType::kFloat64), for_filter(d_y.shape(), DType::kFloat64);
  for (std::int64_t i = 0; i < n; ++i) {
    const double scale = scales[static_cast<std::size_t>(i) % scales.size()];
    for_input.data<double>()[i] = double{bytes.input_steps[i / of_picture]} * bytes.for_input[i] / scale;
    for_filter.data<double>()[i] = double{bytes.filter_step} * bytes.for_filter[i] / scale;
  }
  std::vector<Bounded> result = members_[m]->backward({{.value = for_input, .error = {}, .disorder = {}}}, wanted);
  result[1] = members_[m]->backward({{.value = for_filter, .error = {}, .disorder = {}}}, wanted)[1];
  return result;
}

std::vector<ExactStep::Gradient> ExactStep::backward(const std::vector<Bounded>& d_outputs,
                                                     const std::vector<bool>& wanted) const {
  std::map<Key, Bounded> gradients;
  for (std::size_t k = 0; k < d_outputs.size(); ++k)
    if (d_outputs[k].value.defined()) gradients[key(step_.outputs[k])] = d_outputs[k];
  std::vector<Gradient> result;
  for (std::size_t m = members_.size(); m-- > 0;) {
    const Node& node = *step_.members[m];
    std::vector<Bounded> arriving(node.output_specs().size());
    bool any = false;
    for (std::size_t k = 0; k < arriving.size(); ++k)
      if (const auto found = gradients.find({&node, static_cast<int>(k)}); found != gradients.end()) {
        arriving[k] = found->second;
        any = true;
      }
    const std::vector<bool> member_wanted = wanted_of(m, wanted);
    if (!any || std::ranges::find(member_wanted, true) == member_wanted.end()) continue;
    const std::vector<Bounded> d_inputs = step_.context.rounding == FactorRounding::kGradientsToInt8
                                              ? bytes_backward(m, arriving[0], member_wanted)
                                              : members_[m]->backward(arriving, member_wanted);
    for (std::size_t i = 0; i < d_inputs.size(); ++i) {
      if (!d_inputs[i].value.defined()) continue;
      if (members_.size() == 1)
        result.push_back({{i}, d_inputs[i]});
      else
        add_to(gradients[key(step_.member_inputs[m][i])], d_inputs[i]);
    }
  }
  for (std::size_t k = 0; members_.size() > 1 && k < step_.inputs.size(); ++k) {
    const auto found = gradients.find(key(step_.inputs[k]));
    if (!wanted[k] || found == gradients.end()) continue;
    Gradient gradient{.inputs = {}, .sum = found->second};
    for (std::size_t j = k; j < step_.inputs.size(); ++j)
      if (wanted[j] && step_.inputs[j] == step_.inputs[k]) gradient.inputs.push_back(j);
    gradients.erase(found);
    result.push_back(std::move(gradient));
  }
  return result;
}

}  // namespace miniqat::bench
