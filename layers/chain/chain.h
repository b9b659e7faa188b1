#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/op_interfaces.h"
#include "layers/chain/chain_batch_norm.h"
#include "layers/chain/chain_quantizer.h"
#include "layers/pool.h"

namespace miniqat::layers {

/// The parts of a chain, in this order. An index says which input of the chain belongs to a part; -1, null or none mean
/// that the part is not there. Vectors are [c], like x's last axis.
struct ChainParts {
  /// x * vector, and that by another.
  int scale_input = -1;
  int second_scale_input = -1;
  std::optional<ChainNorm> norm = std::nullopt;
  /// + vector.
  int bias_input = -1;
  /// + a tensor like x.
  int addend_input = -1;
  /// Relu or Relu6.
  bool clamps = false;
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
  /// A quantizer with inputs min and max from `range_input` on.
  int range_input = -1;
  std::shared_ptr<const ChainQuantizer> quantizer = nullptr;
  /// OpTraits of all parts.
  std::vector<OpState> state = {};
  std::vector<std::int64_t> delays = {};
  /// Max pooling with windows that neither overlap nor leave x.
  std::optional<PoolAttributes> pool = std::nullopt;

  bool normalises() const { return norm.has_value(); }
  bool has_vectors() const { return scale_input >= 0 || normalises() || bias_input >= 0; }
  bool observes_range() const { return quantizer != nullptr && quantizer->observes_range(); }
  bool quantizes(const Phase& phase) const { return quantizer != nullptr && quantizer->quantizes(phase); }
  bool trains_range() const { return quantizer != nullptr && quantizer->trains_range(); }
  bool uses_batch(const Phase& phase) const { return normalises() && norm->attributes.uses_batch(phase); }
  /// The quantizer's inputs.
  Range<float> range(const ForwardContext& context) const;
  /// Whether backward reads x.
  bool needs_input() const { return scale_input >= 0 || normalises(); }
  /// Whether forward keeps the roundings for the gradients of the range. Where backward has x in any case, it rounds
  /// again instead.
  bool keeps_rounding() const { return trains_range() && (!needs_input() || pool); }
  bool rounds_again() const { return trains_range() && !keeps_rounding(); }
  /// What there is before the quantizer; the vectors' part is `norm`, where there is one. The map lives in `scope`.
  ChainMap map(const ForwardContext& context, const std::optional<ChainMap>& norm, ScratchScope& scope) const;
  /// Null if there is none.
  const float* addend(const ForwardContext& context) const;
};

/// The ops behind a layer (or anywhere else) as one op, which the plan puts in their place:
///
///   x -> * vector (* vector) -> BatchNorm or + vector -> + tensor -> Relu or Relu6 -> FakeQuant -> MaxPool
///
/// each of which may be missing. Input 0 is x, output 0 what the last of them gives; with a BatchNorm its outputs 1 and
/// 2 are the chain's, too.
///
/// The forward pass reads x twice if there are batch statistics or an observed range of a quantizer, otherwise once.
/// Statistics and range come out of the same first pass. Every part before the quantizer is monotone in x for each
/// channel, also as rounded. So the range at the quantizer follows from the smallest and the largest x of each channel,
/// to the bit. (A tensor added in between has no such bound: then the sum is written, looked at, and rounded in place.)
///
/// Rounded to 8 bits or fewer, the output can be packed into bytes.
///
/// Backward needs one bit an element, for clamping and straight-through estimator together. With a pool it needs one
/// byte for each window: the place of the largest element, or a mark that no gradient passes. It reads x only for a
/// batch norm or a trained factor. For a trained range it then rounds x again; where it has no x, the range takes two
/// bytes more for each element of the output.
///
/// One pass is a file: chain_forward.cpp, chain_backward.cpp.
class Chain final : public FusedOp, public ObservesBatch, public PacksOutput {
 public:
  /// `type` names the parts, as "BiasAdd+Relu".
  Chain(ChainParts parts, std::string type) : parts_(std::move(parts)), type_(std::move(type)) {}

  std::string_view type() const override { return type_; }
  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  OpTraits traits() const override;
  std::vector<TensorSpec> saved(std::span<const TensorSpec> inputs) const override;
  bool updates(int input, const Phase& phase) const override;
  /// The batch norm's observations, then the quantizer's.
  std::size_t observations(std::span<const TensorSpec> inputs, const Phase& phase) const override;
  /// Only the fast backend has chains.
  void store_observed(const ForwardContext& context, Backend) const override;
  std::optional<PackedForm> packed_output(std::span<const TensorSpec> inputs, const Phase& phase) const override;
  void forward(const ForwardContext& context) const override;
  void backward(const BackwardContext& context) const override;

 private:
  ChainParts parts_;
  std::string type_;
};

}  // namespace miniqat::layers
