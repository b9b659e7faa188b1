#include "quantize/rewrite/verdicts.h"

#include <unordered_set>

namespace miniqat::quantize {

std::vector<const TensorVerdict*> LayerVerdict::outputs() const {
  std::vector<const TensorVerdict*> all;
  if (before_bypass) all.push_back(&*before_bypass);
  all.push_back(&output);
  if (after_bypass) all.push_back(&*after_bypass);
  return all;
}

std::vector<LayerQuantizers> quantizers_by_layer(const Verdicts& verdicts) {
  std::unordered_set<const Node*> taken;
  const auto hand_out = [&](const Node* quantizer, std::vector<QuantizedTensor>& list) {
    if (quantizer == nullptr || !taken.insert(quantizer).second) return;
    list.push_back({quantizer->name(), quantizer->input(0).shape().elements()});
  };
  std::vector<LayerQuantizers> result;
  for (const LayerVerdict& verdict : verdicts.layers) {
    LayerQuantizers& layer = result.emplace_back(LayerQuantizers{.layer = verdict.match->layer->name()});
    hand_out(verdict.weights.quantizer, layer.weights);
    for (const TensorVerdict* tensor : verdict.outputs()) {
      hand_out(tensor->quantizer, layer.output);
      for (const Node* narrow : tensor->for_layers) hand_out(narrow, layer.output);
    }
  }
  return result;
}

}  // namespace miniqat::quantize
