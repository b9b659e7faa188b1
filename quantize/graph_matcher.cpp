#include "quantize/graph_matcher.h"

#include <algorithm>

namespace miniqat::quantize {
namespace {

PatternRef share(Pattern pattern) { return std::make_shared<const Pattern>(std::move(pattern)); }

}  // namespace

PatternRef anything() { return share({}); }

PatternRef op(std::vector<std::string_view> types) { return share({.types = std::move(types)}); }

PatternRef op(std::vector<std::string_view> types, std::vector<PatternRef> inputs) {
  return share({.types = std::move(types), .order = Pattern::Inputs::kOrdered, .inputs = std::move(inputs)});
}

PatternRef op_unordered(std::vector<std::string_view> types, std::vector<PatternRef> inputs) {
  return share({.types = std::move(types), .order = Pattern::Inputs::kUnordered, .inputs = std::move(inputs)});
}

PatternRef op_over_all(std::vector<std::string_view> types, PatternRef every_input) {
  return share({.types = std::move(types), .order = Pattern::Inputs::kAll, .inputs = {std::move(every_input)}});
}

PatternRef one_of(std::vector<PatternRef> alternatives) { return share({.alternatives = std::move(alternatives)}); }

PatternRef rank_up_to(int max_rank, const PatternRef& pattern) {
  Pattern narrowed = *pattern;
  narrowed.max_rank = max_rank;
  return share(std::move(narrowed));
}

Output Match::tensor(const PatternRef& pattern) const {
  const auto found = tensors_.find(pattern.get());
  return found == tensors_.end() ? Output{} : found->second;
}

GraphMatcher::GraphMatcher(const Graph& graph, std::vector<std::string_view> transparent)
    : order_(graph.topological_order()), transparent_(std::move(transparent)) {}

std::vector<Match> GraphMatcher::find(const PatternRef& pattern) const {
  std::vector<Match> matches;
  for (Node* node : order_)
    if (!is_one_of(node->type(), transparent_))
      std::ranges::move(match(pattern, node->output()), back_inserter(matches));
  return matches;
}

std::vector<Match> GraphMatcher::match(const PatternRef& pattern, Output tensor) const {
  while (is_one_of(tensor.node->type(), transparent_)) tensor = tensor.node->input(0);

  std::vector<Match> matches;
  if (!pattern->alternatives.empty()) {
    for (const PatternRef& alternative : pattern->alternatives)
      std::ranges::move(match(alternative, tensor), back_inserter(matches));
  } else {
    const bool fits = (pattern->types.empty() || is_one_of(tensor.node->type(), pattern->types)) &&
                      tensor.shape().rank() <= pattern->max_rank;
    if (fits) matches = match_inputs(*pattern, *tensor.node);
  }
  for (Match& match : matches) match.tensors_[pattern.get()] = tensor;
  return matches;
}

std::vector<Match> GraphMatcher::match_inputs(const Pattern& pattern, const Node& node) const {
  if (pattern.order == Pattern::Inputs::kUnspecified) return {Match{}};
  std::vector<PatternRef> wanted = pattern.inputs;
  if (pattern.order == Pattern::Inputs::kAll) wanted.assign(node.inputs().size(), pattern.inputs.front());
  if (wanted.size() != node.inputs().size()) return {};

  std::vector<Match> matches;
  const auto in_this_order = [&] {
    std::vector<Match> partial = {Match{}};
    for (std::size_t i = 0; i < wanted.size() && !partial.empty(); ++i) {
      const std::vector<Match> found = match(wanted[i], node.inputs()[i]);
      std::vector<Match> extended;
      for (const Match& head : partial)
        for (const Match& tail : found) {
          extended.push_back(head);
          extended.back().tensors_.insert(tail.tensors_.begin(), tail.tensors_.end());
        }
      partial = std::move(extended);
    }
    std::ranges::move(partial, back_inserter(matches));
  };
  if (pattern.order != Pattern::Inputs::kUnordered) {
    in_this_order();
    return matches;
  }
  std::vector<std::size_t> permutation(pattern.inputs.size());
  for (std::size_t i = 0; i < permutation.size(); ++i) permutation[i] = i;
  do {
    for (std::size_t i = 0; i < permutation.size(); ++i) wanted[i] = pattern.inputs[permutation[i]];
    in_this_order();
  } while (std::ranges::next_permutation(permutation).found);
  return matches;
}

bool is_one_of(std::string_view type, std::span<const std::string_view> types) {
  return std::ranges::find(types, type) != types.end();
}

Output source_through(Output tensor, std::span<const std::string_view> types) {
  while (is_one_of(tensor.node->type(), types)) tensor = tensor.node->input(0);
  return tensor;
}

std::vector<Use> uses_through(Output tensor, std::span<const std::string_view> types) {
  std::vector<Use> uses(tensor.node->uses(tensor.index).begin(), tensor.node->uses(tensor.index).end());
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const Use use = uses[i];
    if (use.input != 0 || !is_one_of(use.node->type(), types)) continue;
    uses.insert(uses.end(), use.node->uses().begin(), use.node->uses().end());
  }
  return uses;
}

}  // namespace miniqat::quantize
