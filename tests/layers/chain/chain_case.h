#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/session.h"
#include "layers/layers.h"
#include "quantize/fake_quant.h"

// Graphs whose middle the plan runs as one Chain (layers/chain/chain.h), with numbers for them that are exact in
// float32 whatever the order of the operations: fast and reference backend then round, clamp and pool alike, to the
// bit, and no value lies near enough to a boundary of the quantizer for the comparison to depend on luck.

namespace miniqat::testing {

enum class Shift {
  kNone,
  kBiasAdd,
  /// Add with the vector on the right, and on the left.
  kAddVector,
  kVectorAdd,
  /// With the batch's statistics; with moving ones in every run; with moving ones since it froze.
  kNorm,
  kMovingNorm,
  kFrozenNorm
};
/// The side of the Add that the other tensor is on.
enum class Addend { kNone, kRight, kLeft };
enum class Clamp { kNone, kRelu, kRelu6 };

struct ChainRecipe {
  Shape shape = {16, 8};
  /// Mul by a vector: a trained one, or before a batch norm one without a gradient. And by a second one, trained.
  bool scale = false;
  bool second_scale = false;
  Shift shift = Shift::kNone;
  Addend addend = Addend::kNone;
  Clamp clamp = Clamp::kNone;
  std::optional<quantize::FakeQuantAttributes> quantizer = {};
  std::optional<layers::PoolAttributes> pool = {};

  bool normalises() const { return shift >= Shift::kNorm; }
  bool uses_batch() const { return shift == Shift::kNorm; }
  std::int64_t rows() const { return shape.elements() / shape.channels(); }
  /// Whether the batch's mean, variance and sigma can be made exact.
  bool is_exact() const { return !uses_batch() || rows() % 16 == 0; }
  /// For failures.
  std::string text() const;
};

struct ChainCase {
  Graph graph;
  Output y;
  /// What the chain should be made of.
  std::vector<const Node*> members;
  /// y, and the gradients of a weighted sum of it for everything.
  RunRequest request;
};

/// The recipe's nodes between two that are no part of any chain.
ChainCase chain_case(const ChainRecipe& recipe);

/// Numbers for all placeholders; different ones for every key.
Feeds chain_feeds(const ChainCase& chain, const ChainRecipe& recipe, std::uint64_t key);
void fill_chain_variables(const Graph& graph, Session& session);

/// Runs the chain twice in training and once in evaluation on the fast backend, with 1, 2 and 3 threads where it is
/// large enough for them, and compares outputs, gradients and updated variables with the reference backend.
void expect_chain_is_reference(const ChainRecipe& recipe);

/// The plan runs exactly these nodes as one step.
void expect_fused(const Graph& graph, const PlanRequest& request, const std::vector<const Node*>& members);
/// The plan runs this node by its own op, in a step of its own.
void expect_alone(const Graph& graph, const PlanRequest& request, Output output);
PlanRequest plan_request(const RunRequest& request, std::int64_t quantization_step = 1);

/// Every part that a chain accepts in every combination; `pools` says which half: those with a pool at the end or
/// those without. Shapes and quantizers are still to be chosen.
std::vector<ChainRecipe> all_chains(bool pools);

/// Per-tensor quantizers of all kinds that a chain accepts while training.
const std::vector<quantize::FakeQuantAttributes>& chain_quantizers();

/// Element by element the same bits, NaNs apart.
void expect_same_bits(const Tensor& actual, const Tensor& expected, const std::string& what);

}  // namespace miniqat::testing
