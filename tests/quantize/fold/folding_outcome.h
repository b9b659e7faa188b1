#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "core/graph/source_ops.h"
#include "tests/quantize/fold/folding_net.h"

namespace miniqat::testing {

inline double element(const Tensor& tensor, std::int64_t i) {
  return tensor.dtype() == DType::kFloat64 ? tensor.data<double>()[i] : tensor.data<float>()[i];
}

/// Within `relative` of the largest magnitude in the tensor.
inline void expect_close(const Tensor& actual, const Tensor& expected, double relative, const std::string& what) {
  ASSERT_EQ(actual.shape(), expected.shape()) << what;
  double largest = 1e-3;
  for (std::int64_t i = 0; i < expected.elements(); ++i) largest = std::max(largest, std::abs(element(expected, i)));
  for (std::int64_t i = 0; i < expected.elements(); ++i)
    ASSERT_NEAR(element(actual, i), element(expected, i), relative * largest) << what << " at " << i;
}

/// What a run computed and what it left behind.
struct Outcome {
  Tensor y;
  NamedTensors gradients;
  NamedTensors variables;
};

/// All trainable variables and all inputs.
inline std::vector<Output> gradient_targets(const Graph& graph) {
  std::vector<Output> targets;
  for (const Node* node : graph.nodes()) {
    const auto* variable = node->as<Variable>();
    if (node->type() == "Placeholder" || (variable && variable->trainable)) targets.push_back(node->output());
  }
  return targets;
}

/// One step, after so many others, with gradients of (the sum of) `loss`.
inline Outcome run(Graph& graph, Output loss, const SessionOptions& options, bool training, std::int64_t step = 0) {
  Session session(graph, options);
  number_variables(graph, session);
  session.set_quantization_step(step);
  const RunRequest request{.fetches = graph.outputs(),
                           .gradients_of = loss,
                           .gradient_targets = gradient_targets(graph),
                           .training = training};
  const RunResult result = session.run(request, numbered_feeds(graph));
  Outcome outcome{.y = result.fetched[0], .gradients = {}, .variables = {}};
  for (std::size_t k = 0; k < result.gradients.size(); ++k)
    outcome.gradients[request.gradient_targets[k].node->name()] = result.gradients[k];
  for (const auto& [name, value] : session.variables()) outcome.variables[name] = value.clone();
  return outcome;
}

inline Outcome run(FoldingNet& net, const SessionOptions& options, bool training, std::int64_t step = 0) {
  return run(net.graph, net.loss, options, training, step);
}

/// Variables that only `actual` has are ignored.
inline void expect_same(const Outcome& actual, const Outcome& expected, double relative) {
  expect_close(actual.y, expected.y, relative, "y");
  EXPECT_EQ(actual.gradients.size(), expected.gradients.size());
  for (const auto& [name, gradient] : expected.gradients)
    expect_close(actual.gradients.at(name), gradient, relative, "gradient of " + name);
  for (const auto& [name, value] : expected.variables)
    expect_close(actual.variables.at(name), value, relative, name + " after the step");
}

}  // namespace miniqat::testing
