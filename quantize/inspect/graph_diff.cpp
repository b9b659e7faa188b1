#include "quantize/inspect/graph_diff.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/graph/attribute_json.h"
#include "core/graph/graph_json.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "quantize/quantizers.h"

namespace miniqat::quantize {
namespace {

using Json = nlohmann::ordered_json;

/// Nodes of `graph` that `other` lacks, producers first.
struct OwnNodes {
  std::vector<const Node*> listed;
  std::size_t quantizers = 0;
  /// Only ranges of quantizers that `other` lacks, too.
  std::size_t ranges = 0;

  OwnNodes(const Graph& graph, const Graph& other) {
    for (const Node* node : graph.topological_order()) {
      if (other.find(node->name()) != nullptr) continue;
      const auto own = [&](const Use& use) { return other.find(use.node->name()) == nullptr; };
      if (is_range_only(graph, *node) && std::ranges::all_of(node->uses(), own)) {
        ++ranges;
        continue;
      }
      listed.push_back(node);
      if (node->as<FakeQuant>() != nullptr) ++quantizers;
    }
  }

  std::size_t size() const { return listed.size() + ranges; }
};

/// "8 bits, last value, narrow, of conv1/weights", or the shape and the inputs of any other node.
std::string details_of(const Node& node) {
  if (const auto* quantizer = node.as<FakeQuant>())
    return concat(quantizer_text(*quantizer), ", of ", node.input(0).name());
  std::vector<std::string> inputs;
  for (const Output& input : node.inputs()) inputs.push_back(input.name());
  return concat(node.output_specs()[0].shape, inputs.empty() ? "" : " of ", joined(inputs));
}

/// The nodes' lines in three columns.
std::string table_of(const std::vector<const Node*>& nodes) {
  std::size_t name_width = 0;
  std::size_t type_width = 0;
  for (const Node* node : nodes) {
    name_width = std::max(name_width, node->name().size());
    type_width = std::max(type_width, node->type().size());
  }
  std::string text;
  for (const Node* node : nodes)
    text += concat("  ", node->name(), std::string(name_width - node->name().size() + 2, ' '), node->type(),
                   std::string(type_width - node->type().size() + 2, ' '), details_of(*node), "\n");
  return text;
}

std::string name_or_nothing(std::span<const Output> outputs, std::size_t i) {
  return i < outputs.size() ? outputs[i].name() : "nothing";
}

/// A line for every place where two lists name different tensors.
std::vector<std::string> moves(std::string_view role, std::span<const Output> before, std::span<const Output> after) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < std::max(before.size(), after.size()); ++i) {
    const std::string was = name_or_nothing(before, i);
    const std::string now = name_or_nothing(after, i);
    if (was != now) lines.push_back(concat(role, " ", i, ": was ", was, ", now ", now));
  }
  return lines;
}

std::string shortened(const Json& value) {
  constexpr std::size_t kLongest = 60;
  const std::string text = value.dump();
  return printable(text.size() <= kLongest ? text : text.substr(0, kLongest) + "...");
}

/// "was 1, now 2"; of two lists as long, where they differ first.
std::string change_of(const Json& was, const Json& now) {
  constexpr std::size_t kShort = 8;
  if (!was.is_array() || !now.is_array() || was.size() != now.size() || was.size() <= kShort)
    return concat(": was ", shortened(was), ", now ", shortened(now));
  std::size_t first = was.size();
  std::size_t count = 0;
  for (std::size_t i = was.size(); i-- > 0;) {
    if (was[i] == now[i]) continue;
    first = i;
    ++count;
  }
  return concat("[", first, "]: was ", shortened(was[first]), ", now ", shortened(now[first]), " (", count, " of ",
                was.size(), " elements differ)");
}

std::vector<std::string> attribute_changes(const Node& before, const Node& after) {
  if (before.type() != after.type()) return {concat(after.name(), " op: was ", before.type(), ", now ", after.type())};
  std::vector<std::string> lines;
  const Json was = all_attributes_to_json(before.op());
  const Json now = all_attributes_to_json(after.op());
  Json keys = was;
  keys.update(now);
  for (const auto& item : keys.items()) {
    const Json old_value = was.value(item.key(), Json());
    const Json new_value = now.value(item.key(), Json());
    if (old_value != new_value) lines.push_back(concat(after.name(), " ", item.key(), change_of(old_value, new_value)));
  }
  return lines;
}

void append(std::vector<std::string>& lines, const std::vector<std::string>& more) {
  lines.insert(lines.end(), more.begin(), more.end());
}

std::string section(std::string_view title, const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  std::string text = concat(title, "\n");
  for (const std::string& line : lines) text += concat("  ", line, "\n");
  return text;
}

std::string node_count(const OwnNodes& nodes, std::string_view verb) {
  const std::string quantizers = nodes.quantizers == 0 ? ""
                                                       : concat(" (", counted(nodes.quantizers, "quantizer"), ", ",
                                                                counted(nodes.ranges, "variable"), " of their ranges)");
  return concat(counted(nodes.size(), "node"), " ", verb, quantizers);
}

std::string node_section(std::string_view title, const OwnNodes& nodes) {
  return nodes.listed.empty() ? "" : concat(title, "\n", table_of(nodes.listed));
}

}  // namespace

std::string graph_diff(const Graph& before, const Graph& after) {
  const OwnNodes added(after, before);
  const OwnNodes removed(before, after);
  std::vector<std::string> rerouted;
  std::vector<std::string> changed;
  for (const Node* node : after.topological_order()) {
    const Node* twin = before.find(node->name());
    if (twin == nullptr) continue;
    append(rerouted, moves(node->name() + " input", twin->inputs(), node->inputs()));
    append(changed, attribute_changes(*twin, *node));
  }
  const std::vector<std::string> outputs = moves("output", before.outputs(), after.outputs());
  if (added.size() + removed.size() + rerouted.size() + changed.size() + outputs.size() == 0)
    return graph_to_json(before) == graph_to_json(after) ? "the graphs are identical\n"
                                                         : "the graphs are the same but for the order of their nodes\n";
  return node_section("added", added) + node_section("removed", removed) + section("rerouted", rerouted) +
         section("changed", changed) + section("outputs", outputs) +
         concat(node_count(added, "added"), ", ", node_count(removed, "removed"), ", ",
                counted(rerouted.size(), "edge"), " rerouted, ", counted(changed.size(), "attribute"), " and ",
                counted(outputs.size(), "output"), " changed\n");
}

}  // namespace miniqat::quantize
