#include "quantize/inspect/quantizer_text.h"

#include <algorithm>

#include "core/graph/source_ops.h"
#include "core/text/suggest.h"

namespace miniqat::quantize {

std::vector<std::string> grid_words(const FakeQuantAttributes& attributes) {
  std::vector<std::string> words;
  if (attributes.per_channel) words.emplace_back("per channel");
  if (attributes.symmetric) words.emplace_back("symmetric");
  if (attributes.narrow_range) words.emplace_back("narrow");
  return words;
}

std::string quantizer_text(const FakeQuantAttributes& attributes) {
  std::vector<std::string> words = {concat(attributes.bits, " bits"), std::string(traits_of(attributes.range).text)};
  for (const std::string& word : grid_words(attributes)) words.push_back(word);
  if (attributes.delay > 0) words.push_back(concat("delay ", attributes.delay));
  if (!attributes.is_training) words.emplace_back("evaluation");
  return joined(words);
}

bool is_range_only(const Graph& graph, const Node& node) {
  const auto* variable = node.as<Variable>();
  const bool of_range = variable != nullptr
                            ? !variable->trainable || variable->update == VariableUpdateKind::kMultiplicative
                            : node.as<Constant>() != nullptr;
  return of_range && !node.uses().empty() && !graph.is_output(node) &&
         std::ranges::all_of(node.uses(),
                             [](const Use& use) { return use.input > 0 && use.node->as<FakeQuant>() != nullptr; });
}

}  // namespace miniqat::quantize
