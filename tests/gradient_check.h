#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/engine/session.h"

namespace miniqat::testing {

/// Adds nodes that multiply each float output by fixed random weights and join the products into one tensor [n], whose
/// sum then has another derivative by every element: an all-ones gradient would hide mistakes. Before that 1 is added,
/// in place where the plan allows it: an op whose backward reads an output without saying so then finds it changed.
/// Throws Error when no output is float32.
Output weighted(Graph& graph, std::span<const Output> outputs);

struct GradientCheck {
  Graph& graph;
  /// Its sum is what is differentiated.
  Output objective;
  /// Float32 Placeholders and Variables.
  std::vector<Output> targets;
  Feeds feeds;
  /// Values for Variables; the others start from the session's seed.
  NamedTensors variables = {};
  bool training = true;
  /// How many elements of each target are tried, chosen at random; all when it has no more.
  std::int64_t places = 40;
  /// Relative error allowed beyond the rounding of the difference; elements below a thousandth of the largest count as
  /// that large.
  double tolerance = 1e-6;
};

/// Compares the gradients of the reference backend in double with central differences. Returns "" when they agree, else
/// what differs: target, place and both numbers. For the differences to be accurate the fed values should not lie
/// closer than 1e-5 to a kink of the objective.
std::string check_gradients(const GradientCheck& check);

/// Compares two float tensors. Returns "" when no element differs by more than `tolerance` times the largest magnitude
/// of `wanted` and NaNs stand in the same places; else a text with shape, the worst place, and the elements around it.
std::string difference(const Tensor& got, const Tensor& wanted, double tolerance);

/// Random values between low and high: evenly spread, all different (no ties for a maximum), and none at a whole number
/// (no kinks). The same seed gives the same values.
Tensor distinct_values(const Shape& shape, double low, double high, std::uint64_t seed);

}  // namespace miniqat::testing
