#include "bench/judge/step_judge.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/tensors/shape.h"
#include "core/text/error.h"

namespace miniqat::bench {
namespace {

double number_at(const Tensor& tensor, std::int64_t i) {
  switch (tensor.dtype()) {
    case DType::kFloat32:
      return tensor.data<float>()[i];
    case DType::kFloat64:
      return tensor.data<double>()[i];
    case DType::kInt32:
      return tensor.data<std::int32_t>()[i];
    case DType::kUInt8:
      return tensor.data<std::uint8_t>()[i];
    default:
      fail("a step computes ", name_of(tensor.dtype()));
  }
}

bool is_finite(const Tensor& tensor) {
  if (tensor.dtype() != DType::kFloat32) return true;
  return std::ranges::all_of(tensor.values<float>(), [](float value) { return std::isfinite(value); });
}

/// How many times the allowed difference; 0 for the same number.
double excess(double got, double wanted, double allowed) {
  if (got == wanted || (std::isnan(got) && std::isnan(wanted))) return 0;
  // A number beyond float32 may have become infinite.
  if (std::abs(wanted) + allowed > std::numeric_limits<float>::max()) return 0;
  const double difference = std::abs(got - wanted);
  if (!std::isfinite(difference)) return std::numeric_limits<double>::infinity();
  return allowed > 0 ? difference / allowed : std::numeric_limits<double>::infinity();
}

/// One rounding to float32 is always allowed.
double allowed_at(const Bounded& wanted, std::int64_t i) {
  return error_at(wanted.error, i) + (wanted.value.dtype() == DType::kFloat64
                                          ? 2 * kRounding * std::abs(wanted.value.data<double>()[i]) + kTiny
                                          : 0);
}

/// Output 0 from the bytes that the step has left.
Tensor packed_output(const Plan::ForwardStep& step) {
  return unpacked(step.packed_form, *step.context.packed, step.outputs[0].shape());
}

}  // namespace

std::string StepFinding::text() const {
  std::string also;
  for (const Node* member : members) also += (also.empty() ? "" : " + ") + member->name();
  return concat(describe(*node), members.size() > 1 ? " (" + also + ")" : "", " ", what, " ", difference);
}

void StepJudge::begin(const Plan& plan) {
  steps_by_context_.clear();
  exact_.clear();
  contents_.clear();
  unjudged_.clear();
  for (const Plan::ForwardStep& step : plan.forward) steps_by_context_[&step.context] = &step;
  if (plan.seed != nullptr) {
    Tensor ones(plan.seed->shape());
    std::ranges::fill(ones.values<float>(), 1.0f);
    contents_[plan.seed] = ones;
  }
}

void StepJudge::note(const Plan::ForwardStep& step, std::string what, std::string difference) {
  findings.push_back(
      {.node = step.node, .members = step.members, .what = std::move(what), .difference = std::move(difference)});
}

/// Notes a tensor that does not hold any more what was written to it.
void StepJudge::expect_untouched(const Plan::ForwardStep* step, const Tensor* tensor, const std::string& what) {
  const auto [found, fresh] = contents_.try_emplace(tensor);
  if (fresh) {
    found->second = tensor->clone();
    return;
  }
  if (std::memcmp(found->second.raw(), tensor->raw(), tensor->bytes()) == 0 || step == nullptr) return;
  for (std::int64_t i = 0; i < tensor->elements(); ++i) {
    const double before = number_at(found->second, i), now = number_at(*tensor, i);
    if (before == now || (std::isnan(before) && std::isnan(now))) continue;
    note(*step, what,
         concat("was overwritten before it was read: ", place_in(tensor->shape(), i), " is ", now, ", was ", before));
    return;
  }
}

void StepJudge::compare(const Plan::ForwardStep& step, const std::string& what, const Tensor& got,
                        const Bounded& wanted) {
  if (!is_judged(step)) return;
  double worst = 0, largest = 0;
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < got.elements(); ++i) {
    const double ratio = excess(number_at(got, i), number_at(wanted.value, i), allowed_at(wanted, i));
    largest = std::max(largest, std::abs(number_at(wanted.value, i)));
    if (ratio <= worst) continue;
    worst = ratio;
    at = i;
  }
  for (std::int64_t i = 0; i < got.elements(); ++i)
    vague += largest > 0 && allowed_at(wanted, i) > 0.1 * largest ? 1 : 0;
  compared += got.elements();
  if (worst <= 1) return;
  note(step, what,
       concat(got.shape(), " is ", number_at(got, at), " at ", place_in(got.shape(), at), ", should be ",
              number_at(wanted.value, at), "; ", allowed_at(wanted, at), " would be rounding"));
}

void StepJudge::before(const Plan::ForwardStep& step) {
  const auto& read = step.context.packed_inputs.empty() ? step.context.inputs : step.context.packed_inputs;
  for (std::size_t k = 0; k < read.size(); ++k)
    expect_untouched(&step, read[k], concat("input ", k, " (", step.inputs[k].name(), ")"));
  for (const Tensor& input : inputs_of(step))
    if (!is_finite(input)) unjudged_.insert(&step);
  exact_[&step] = std::make_unique<ExactStep>(step);
}

void StepJudge::after(const Plan::ForwardStep& step) {
  ++steps;
  const ExactStep& exact = *exact_.at(&step);
  const ForwardContext& context = step.context;
  for (std::size_t k = 0; k < context.outputs.size(); ++k) {
    if (context.outputs[k] == nullptr) continue;
    const bool is_only_packed = !context.outputs[k]->defined();
    compare(step, concat("output ", k), is_only_packed ? packed_output(step) : *context.outputs[k], exact.output(k));
    if (!is_only_packed) contents_[context.outputs[k]] = context.outputs[k]->clone();
  }
  if (context.packed != nullptr) contents_[context.packed] = context.packed->clone();
  for (std::size_t k = 0; k < context.updates.size(); ++k)
    if (context.updates[k] != nullptr)
      compare(step, concat("update of input ", k), *context.updates[k], exact.update(k));
  for (std::size_t k = 0; k < context.state.size(); ++k)
    compare(step, concat("state ", k), *context.state[k], exact.state(k));
}

const Plan::ForwardStep& StepJudge::forward_of(const Plan::BackwardStep& step) const {
  return *steps_by_context_.at(step.context.forward);
}

void StepJudge::before(const Plan::BackwardStep& step) {
  d_outputs_.clear();
  for (std::size_t k = 0; k < step.context.d_outputs.size(); ++k) {
    const Tensor* d_output = step.context.d_outputs[k];
    d_outputs_.emplace_back();
    if (d_output == nullptr) continue;
    expect_untouched(&forward_of(step), d_output, concat("the gradient of output ", k));
    d_outputs_.back().value = wide_copy(*d_output);
    if (!is_finite(*d_output)) unjudged_.insert(&forward_of(step));
  }
}

/// If one tensor of the graph is several inputs of the step, only their sum is known.
void StepJudge::compare_sum(const Plan::ForwardStep& step, const Plan::BackwardStep& backward,
                            const ExactStep::Gradient& gradient) {
  const std::size_t first = gradient.inputs.front();
  const std::string what = concat("the gradient of input ", first, " (", step.inputs[first].name(), ")");
  const Tensor& got = *backward.context.d_inputs[first];
  if (gradient.inputs.size() == 1) return compare(step, what, got, gradient.sum);
  Tensor sum = got.to(DType::kFloat64);
  for (std::size_t k = 1; k < gradient.inputs.size(); ++k)
    for (std::int64_t i = 0; i < sum.elements(); ++i)
      sum.data<double>()[i] += backward.context.d_inputs[gradient.inputs[k]]->data<float>()[i];
  compare(step, what, sum, gradient.sum);
}

void StepJudge::after(const Plan::BackwardStep& step) {
  ++steps;
  const Plan::ForwardStep& forward = forward_of(step);
  std::vector<bool> wanted;
  for (const Tensor* d_input : step.context.d_inputs) wanted.push_back(d_input != nullptr);
  for (const ExactStep::Gradient& gradient : exact_.at(&forward)->backward(d_outputs_, wanted))
    compare_sum(forward, step, gradient);
  exact_.erase(&forward);
  for (const Tensor* d_input : step.context.d_inputs)
    if (d_input != nullptr) contents_[d_input] = d_input->clone();
  for (const Plan::Sum& sum : step.sums) {
    Tensor& total = contents_.at(sum.total);
    const Tensor& part = contents_.at(sum.part);
    for (std::int64_t i = 0; i < total.elements(); ++i) total.data<float>()[i] += part.data<float>()[i];
  }
}

void StepJudge::end(const Plan& plan) {
  if (plan.forward.empty()) return;
  const Plan::ForwardStep* last = &plan.forward.back();
  for (const Tensor* fetch : plan.fetches) expect_untouched(last, fetch, "a fetched tensor");
  for (const Tensor* gradient : plan.gradients)
    if (gradient != nullptr) expect_untouched(last, gradient, "a gradient at the end");
  for (const Plan::Binding& binding : plan.variables)
    expect_untouched(last, binding.tensor, "variable " + binding.node->name());
  for (const Plan::Binding& binding : plan.placeholders)
    expect_untouched(last, binding.tensor, "fed " + binding.node->name());
  exact_.clear();
  contents_.clear();
}

}  // namespace miniqat::bench
