#pragma once

#include <unordered_set>

#include "quantize/rewrite/layer_bits_index.h"
#include "quantize/rewrite/layer_patterns.h"
#include "quantize/rewrite/rewrite.h"

namespace miniqat::quantize {

/// What holds for one layer.
struct LayerSettings {
  RewriteOptions options;
  /// Of RewriteOptions::layer_bits what changed them; null for none.
  const LayerBits* bits = nullptr;
  /// Which setting decided about the bits.
  const char* of_weight_bits = "weight_bits";
  const char* of_activation_bits = "activation_bits";
  const char* of_sums_bits = "sums_bits";

  /// For the tensors that keep sums_bits.
  LayerSettings for_sums() const;
};

/// Finds them for the layers of a graph. A layer is a first one if its input comes from no other layer, and a last one
/// if no other layer reads its output: these go by ends_bits and logits_bits, which for the
/// output of a last layer come before sums_bits. The first of layer_bits that matches has
/// the last word.
class LayerOptions {
 public:
  /// `options` must stay. Looks at the graph once, here.
  LayerOptions(const Graph& graph, const std::vector<LayerMatch>& matches, const RewriteOptions& options);

  LayerSettings of(const LayerMatch& match) const;

 private:
  const RewriteOptions& options_;
  const LayerBitsIndex index_;
  std::unordered_set<const Node*> first_;
  std::unordered_set<const Node*> last_;
};

}  // namespace miniqat::quantize
