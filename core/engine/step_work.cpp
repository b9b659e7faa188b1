#include "core/engine/step_work.h"

#include <algorithm>
#include <vector>

#include "core/graph/op_queries.h"

namespace miniqat {
namespace {

/// Adds up the bytes of tensors, each memory once.
class Bytes {
 public:
  void add(const Tensor* tensor) {
    if (tensor == nullptr || !tensor->defined() || std::ranges::find(seen_, tensor->raw()) != seen_.end()) return;
    seen_.push_back(tensor->raw());
    sum_ += static_cast<double>(tensor->bytes());
  }
  void add_all(const auto& tensors) {
    for (const Tensor* tensor : tensors) add(tensor);
  }
  double sum() const { return sum_; }

 private:
  std::vector<const void*> seen_;
  double sum_ = 0;
};

double products(const Op& op, const ForwardContext& context) {
  std::vector<TensorSpec> specs;
  for (const Tensor* input : context.inputs) specs.push_back({input->shape(), input->dtype()});
  return static_cast<double>(multiply_adds_of(op, specs));
}

}  // namespace

PartWork work_of(const Op& op, const ForwardContext& context) {
  if (op.traits().view) return {};
  Bytes read, written;
  read.add_all(context.inputs);
  written.add_all(context.outputs);
  written.add_all(context.saved);
  written.add(context.packed);
  return {.multiply_adds = products(op, context), .bytes = read.sum() + written.sum()};
}

PartWork work_of(const Op& op, const BackwardContext& context) {
  const OpTraits traits = op.traits();
  if (traits.view) return {};
  Bytes read, written;
  read.add_all(context.d_outputs);
  for (const int input : traits.backward_inputs) read.add(context.forward->inputs[static_cast<std::size_t>(input)]);
  for (const int output : traits.backward_outputs) read.add(context.forward->outputs[static_cast<std::size_t>(output)]);
  read.add_all(context.forward->saved);
  written.add_all(context.d_inputs);
  const auto gradients = std::ranges::count_if(context.d_inputs, [](const Tensor* gradient) { return gradient; });
  return {.multiply_adds = static_cast<double>(gradients) * products(op, *context.forward),
          .bytes = read.sum() + written.sum()};
}

}  // namespace miniqat
