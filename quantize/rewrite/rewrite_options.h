#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "quantize/fold/fold_pass.h"
#include "quantize/range_kind.h"
#include "quantize/rewrite/layer_bits.h"

namespace miniqat::quantize {

struct RewriteOptions {
  /// 2..16 each.
  int weight_bits = 8;
  int activation_bits = 8;
  /// Ranges are symmetric around 0: all of them, or those of weights. An activation without negative values has half of
  /// a symmetric grid for itself.
  bool symmetric = false;
  bool symmetric_weights = false;
  /// Whether ranges are observed or trained. Learned ranges of weights are symmetric, unless asymmetric_weights says
  /// otherwise: with few bits, a zero point would jump by a good part of the range. Learned ranges start at -6 and 6,
  /// which is far too wide for weights of few bits. training::train sets them at least squares before its first step; a
  /// loop of your own takes them from a graph of create_eval_graph, of the same options, that a Calibrator has seen.
  RangeChoice ranges = RangeChoice::kObserved;
  bool asymmetric_weights = false;
  /// Weights use all integers, with 2 bits four of them (-2..1 where symmetric) instead of three (-1, 0, 1).
  bool full_range_weights = false;
  /// Scales of all quantizers.
  ScaleChoice scales = ScaleChoice::kAny;
  /// Bits of the logits: the output of layers that no other layer reads. Comes before layer_bits. None: ends_bits, else
  /// layer_bits, else 8 where ranges of activations are learned, since the logits are few and have no other chance,
  /// else activation_bits.
  std::optional<std::int64_t> logits_bits = {};
  /// Bits of the weights of the first and last layers, and of the logits without logits_bits. Comes before layer_bits.
  /// The inputs of the last layers keep activation_bits. None: layer_bits or weight_bits.
  std::optional<std::int64_t> ends_bits = {};
  /// Bits of residual sums and of what they add (ResidualSums), at least activation_bits. Where these are fewer, a
  /// layer reads such a tensor through a quantizer of its own, which has activation_bits. None: activation_bits.
  std::optional<std::int64_t> sums_bits = {};
  /// Bits of the quantizers that quantize_input asks for. None: activation_bits.
  std::optional<std::int64_t> input_bits = {};
  /// One range per output channel for weights; activations stay per tensor.
  bool per_channel = false;
  /// The training step that is the first to quantize, counted from 1; 0 is as 1. Observed ranges are observed from the
  /// first step, learned ones stay until then.
  std::int64_t quant_delay = 0;
  /// The training step, counted from 1, from which batch norms use their moving statistics; none means never.
  std::optional<std::int64_t> freeze_bn_delay = {};
  /// kLate needs per_channel and scales of any kind.
  BnFold bn_fold = BnFold::kTf;
  double ema_decay = 0.999;
  /// Rewrite only layers under this scope; "" for all.
  std::string scope = {};
  /// Give the graph's float placeholders that feed layers a quantizer, too.
  bool quantize_input = false;
  /// Leave the outputs of AvgPool, Mean and Concat without quantizers of their own.
  bool float_pools = false;
  /// An unquantized edge into a layer is an error.
  bool strict = false;
  /// Layers that are quantized otherwise: the first that matches a layer decides about its weights and its output.
  std::vector<LayerBits> layer_bits = {};

  /// The general settings of quantizers (rewrite/layer_settings.h): the kinds of ranges, whether weights are symmetric,
  /// whether residual sums have more bits than activations.
  RangeKind weight_range() const;
  RangeKind activation_range() const;
  bool has_symmetric_weights() const;
  bool widens_sums() const;
  /// The bits of the logits, where these are not activation_bits.
  std::optional<int> logits_width() const;
  FoldOptions folding() const { return {.freeze_bn_delay = freeze_bn_delay, .bn_fold = bn_fold, .scope = {scope}}; }

  /// Throws Error naming the option that is out of range, or the pattern of layer_bits that asks for asymmetric weights
  /// where all ranges are symmetric.
  void check() const;
};

}  // namespace miniqat::quantize
