#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/op.h"
#include "core/graph/op_interfaces.h"
#include "core/memory/guarded_memory.h"
#include "core/tensors/random.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"

namespace miniqat::testing {

struct OpResult {
  std::vector<Tensor> outputs;
  /// By position in OpTraits::updated_inputs.
  std::vector<Tensor> updates;
  /// Undefined for inputs without a gradient.
  std::vector<Tensor> d_inputs;
};

/// Runs an op forward and, unless no d_output is defined, backward, without a graph or session. The reference backend
/// computes in the inputs' own type.
inline OpResult run_op(const std::shared_ptr<const Op>& op, const std::vector<Tensor>& inputs,
                       const std::vector<Tensor>& d_outputs = {}, Backend backend = Backend::kFast,
                       bool training = true, std::int64_t quantization_step = 0) {
  const ComputeScope computing;
  std::vector<TensorSpec> specs;
  for (const Tensor& input : inputs) specs.push_back({input.shape()});
  const DType dtype = inputs[0].dtype();
  const OpTraits traits = op->traits();
  const auto holds = [](const std::vector<int>& list, int i) { return std::ranges::find(list, i) != list.end(); };
  OpResult result;
  ForwardContext forward;
  forward.training = training;
  forward.quantization_step = quantization_step;
  for (const Tensor& input : inputs) forward.inputs.push_back(&input);
  for (const TensorSpec& spec : op->infer(specs)) result.outputs.emplace_back(spec.shape, dtype);
  for (Tensor& output : result.outputs) forward.outputs.push_back(&output);
  if (training)
    for (const int i : traits.updated_inputs) result.updates.push_back(inputs[i].clone());
  if (!result.updates.empty()) forward.updates.resize(inputs.size());
  for (std::size_t k = 0; k < result.updates.size(); ++k)
    forward.updates[traits.updated_inputs[k]] = &result.updates[k];
  std::vector<Tensor> saved;
  if (backend == Backend::kFast && !d_outputs.empty())
    for (const TensorSpec& spec : saved_by(*op, specs)) saved.emplace_back(spec);
  for (Tensor& tensor : saved) forward.saved.push_back(&tensor);
  {
    const GuardedStep guarded([&] { return concat(op->type(), " (forward)"); });
    backend == Backend::kFast ? op->forward(forward) : op->reference_forward(forward);
  }
  if (d_outputs.empty()) return result;

  BackwardContext backward;
  backward.forward = &forward;
  for (const Tensor& d_output : d_outputs) backward.d_outputs.push_back(d_output.defined() ? &d_output : nullptr);
  result.d_inputs.resize(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!holds(traits.no_gradient, static_cast<int>(i))) result.d_inputs[i] = Tensor(inputs[i].shape(), dtype);
  for (Tensor& d_input : result.d_inputs) {
    // Gradients are overwritten, whatever the memory held before.
    if (d_input.defined() && dtype == DType::kFloat32) std::ranges::fill(d_input.values<float>(), NAN);
    backward.d_inputs.push_back(d_input.defined() ? &d_input : nullptr);
  }
  const GuardedStep guarded([&] { return concat(op->type(), " (backward)"); });
  backend == Backend::kFast ? op->backward(backward) : op->reference_backward(backward);
  return result;
}

inline Tensor random_tensor(const Shape& shape, std::uint64_t key, float low = -1, float high = 1) {
  Tensor tensor(shape);
  Random random(key);
  for (float& value : tensor.values<float>()) value = random.uniform(low, high);
  return tensor;
}

/// Fails with the worst place when an element is off by more than `tolerance` times the largest expected magnitude.
inline void expect_close(const Tensor& actual, const Tensor& expected, const std::string& what,
                         double tolerance = 1e-4) {
  ASSERT_EQ(actual.shape(), expected.shape()) << what;
  const Tensor a = actual.to(DType::kFloat64);
  const Tensor e = expected.to(DType::kFloat64);
  double largest = 0;
  for (const double value : e.values<double>()) largest = std::max(largest, std::abs(value));
  for (std::int64_t i = 0; i < a.elements(); ++i) {
    const double difference = std::abs(a.data<double>()[i] - e.data<double>()[i]);
    ASSERT_TRUE(difference <= tolerance * largest) << what << ", element " << i << " of " << a.shape() << ": "
                                                   << a.data<double>()[i] << " instead of " << e.data<double>()[i];
  }
}

inline void expect_values(const Tensor& actual, const std::vector<float>& expected, const std::string& what = "") {
  const auto values = actual.values<float>();
  EXPECT_EQ(std::vector<float>(values.begin(), values.end()), expected) << what;
}

/// Fast in float32 against reference in float64, forward and backward from random d_outputs.
inline void expect_fast_is_reference(const std::shared_ptr<const Op>& op, const std::vector<Tensor>& inputs,
                                     const std::string& what, bool training = true) {
  std::vector<TensorSpec> specs;
  std::vector<Tensor> wide_inputs;
  for (const Tensor& input : inputs) {
    specs.push_back(input.spec());
    wide_inputs.push_back(input.to(DType::kFloat64));
  }
  std::vector<Tensor> d_outputs;
  std::vector<Tensor> wide_d_outputs;
  for (const TensorSpec& spec : op->infer(specs)) {
    d_outputs.push_back(random_tensor(spec.shape, 99 + d_outputs.size()));
    wide_d_outputs.push_back(d_outputs.back().to(DType::kFloat64));
  }
  const OpResult fast = run_op(op, inputs, d_outputs, Backend::kFast, training);
  const OpResult reference = run_op(op, wide_inputs, wide_d_outputs, Backend::kReference, training);
  for (std::size_t i = 0; i < fast.outputs.size(); ++i)
    expect_close(fast.outputs[i], reference.outputs[i], what + ": output " + std::to_string(i));
  for (std::size_t i = 0; i < fast.updates.size(); ++i)
    expect_close(fast.updates[i], reference.updates[i], what + ": update " + std::to_string(i));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (fast.d_inputs[i].defined())
      expect_close(fast.d_inputs[i], reference.d_inputs[i], what + ": d_input " + std::to_string(i));
}

/// The text of the Error that shape inference throws; "" when it doesn't.
inline std::string inference_error(const std::shared_ptr<const Op>& op, const std::vector<Shape>& shapes) {
  std::vector<TensorSpec> specs;
  for (const Shape& shape : shapes) specs.push_back({shape});
  try {
    op->infer(specs);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace miniqat::testing
