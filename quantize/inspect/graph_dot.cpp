#include "quantize/inspect/graph_dot.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "core/graph/op_queries.h"
#include "core/graph/source_ops.h"
#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/text/suggest.h"
#include "layers/parts.h"
#include "quantize/quantizers.h"

namespace miniqat::quantize {
namespace {

enum class Role { kInput, kLayer, kWeights, kActivations, kInputQuantizer, kFixedRange, kParameter, kOther };

struct Look {
  std::string_view fill;
  std::string_view style;
  std::string_view legend;
};

/// One for each Role, in the order of the legend.
constexpr std::array<Look, 8> kLooks = {{
    {"#cfe8cf", "shape=ellipse", "input"},
    {"#b9d3f0", "shape=box", "layer"},
    {"#ffb870", "shape=box", "weight quantizer"},
    {"#ffe58a", "shape=box", "activation quantizer"},
    {"#e2c6f0", "shape=box", "input quantizer"},
    {"#e0d2c2", "shape=box", "fixed-range quantizer"},
    {"#f0f0f0", "shape=ellipse, fontsize=8, height=0.2, margin=\"0.03,0.01\"", "parameter"},
    {"#ffffff", "shape=box", "other op"},
}};

const Look& look_of(Role role) { return kLooks[static_cast<std::size_t>(role)]; }

/// Between quotes a backslash starts an escape sequence in labels and, at the end, in ids; an ampersand starts an HTML
/// entity. The graph refuses names with quotes.
std::string escaped(std::string_view name, bool label) {
  std::string text;
  for (const char c : name) {
    if (c == '\\')
      text += "\\\\";
    else if (c == '&' && label)
      text += "&amp;";
    else
      text += c;
  }
  return text;
}

std::string id_of(const Node& node) { return concat('"', escaped(node.name(), false), '"'); }

std::string last_part(std::string_view name) { return std::string(name.substr(name.rfind('/') + 1)); }

bool multiplies(const Node& node) { return multiply_adds_of(node.op(), node.input_specs()) > 0; }

bool is_value(const Node& node) { return node.as<Variable>() != nullptr || node.as<Constant>() != nullptr; }

/// Hands a tensor on: Identity, Reshape, Concat and the like, but no layer and no quantizer.
bool passes_on(const Node& node) {
  if (multiplies(node) || node.as<FakeQuant>() != nullptr) return false;
  return node.inputs().size() == 1 || node.as<layers::Concat>() != nullptr;
}

bool feeds_layer_weights(const Node& quantizer) {
  std::vector<const Node*> reached = {&quantizer};
  std::set<const Node*> seen = {&quantizer};
  for (std::size_t next = 0; next < reached.size(); ++next) {
    for (const Use& use : reached[next]->uses()) {
      if (multiplies(*use.node) && use.input == 1) return true;
      if (passes_on(*use.node) && seen.insert(use.node).second) reached.push_back(use.node);
    }
  }
  return false;
}

bool comes_from_placeholder(const Node& quantizer) {
  const Node* node = quantizer.input(0).node;
  while (node->inputs().size() == 1 && passes_on(*node)) node = node->input(0).node;
  return node->as<Placeholder>() != nullptr;
}

Role role_of(const Node& node) {
  if (const auto* quantizer = node.as<FakeQuant>()) {
    const RangeKindTraits& kind = traits_of(quantizer->range);
    if (!kind.changes()) return Role::kFixedRange;
    if ((kind.follows_tensor() || kind.learned) && feeds_layer_weights(node)) return Role::kWeights;
    return comes_from_placeholder(node) ? Role::kInputQuantizer : Role::kActivations;
  }
  if (node.as<Placeholder>() != nullptr) return Role::kInput;
  if (is_value(node)) return Role::kParameter;
  return multiplies(node) ? Role::kLayer : Role::kOther;
}

/// A batch norm's moving mean or variance: a vector that is not trained, beside other operands or without a gradient.
/// (A frozen bias is one of two operands and has a gradient: it stays.)
bool is_statistic(const Graph& graph, const Node& node) {
  const auto* variable = node.as<Variable>();
  if (variable == nullptr || variable->trainable || node.uses().empty()) return false;
  if (node.output_specs()[0].shape.rank() > 1 || graph.is_output(node)) return false;
  return std::ranges::all_of(node.uses(), [](const Use& use) {
    const std::vector<int> no_gradient = inputs_without_gradient(use.node->op());
    return use.node->inputs().size() > 2 || std::ranges::find(no_gradient, use.input) != no_gradient.end();
  });
}

bool is_hidden(const Graph& graph, const Node& node) { return is_range_only(graph, node) || is_statistic(graph, node); }

/// The rows between a layer and a tensor that comes from another scope: with room for what leads from the weights to
/// the layer, clusters stand in one column; without it they would stand side by side.
int rows_to_clear(const Node& from, const Node& to) {
  constexpr int kMost = 6;
  const std::string scope = scope_of(to.name());
  if (!multiplies(to) || to.inputs().size() < 2 || scope_of(from.name()) == scope) return 1;
  int rows = 1;
  const Node* node = to.input(1).node;
  for (; rows < kMost && scope_of(node->name()) == scope; ++rows) {
    if (node->inputs().empty()) return rows + 1;
    node = node->input(0).node;
  }
  return rows;
}

bool says_type(const std::string& name, std::string_view type) {
  const auto same = [](char a, char b) { return ascii_lower(a) == ascii_lower(b); };
  return std::search(name.begin(), name.end(), type.begin(), type.end(), same) != name.end();
}

std::string quantizer_label(const FakeQuantAttributes& attributes) {
  std::string label = concat("\\n", attributes.bits, " bits, ", traits_of(attributes.range).text);
  const std::vector<std::string> words = grid_words(attributes);
  if (!words.empty()) label += "\\n" + joined(words);
  return label;
}

std::string label_of(const Node& node) {
  const std::string name = last_part(node.name());
  std::string label = escaped(name, true);
  if (const auto* quantizer = node.as<FakeQuant>()) return label + quantizer_label(*quantizer);
  const bool plain = is_value(node) || node.as<Placeholder>() != nullptr;
  if (!plain && !says_type(name, node.type())) label += concat("\\n", node.type());
  if (node.output_specs().empty()) return label;
  const Shape& shape = node.output_specs()[0].shape;
  if (node.inputs().empty() || node.input(0).shape() != shape) label += concat("\\n", shape);
  return label;
}

/// Scopes nested deeper than this are drawn in the last one that counts.
constexpr int kDeepestCluster = 32;

/// A cluster of the picture: a scope's nodes, and the scopes in it by the last part of their names.
struct Cluster {
  std::vector<const Node*> nodes;
  std::map<std::string, Cluster, std::less<>> scopes;
  /// The names of `scopes` in the order in which they came.
  std::vector<std::string> order;

  Cluster& inner(std::string_view part) {
    const auto found = scopes.find(part);
    if (found != scopes.end()) return found->second;
    return scopes[order.emplace_back(part)];
  }
};

class Writer {
 public:
  explicit Writer(const Graph& graph) : graph_(graph) {
    for (const Node* node : graph.nodes())
      if (!is_hidden(graph, *node)) cluster_of(node->name()).nodes.push_back(node);
  }

  std::string write() {
    text_ =
        "digraph miniqat {\n"
        "  graph [fontname=\"Helvetica\", fontsize=11, labeljust=l, nodesep=0.15, ranksep=0.2];\n"
        "  node [style=\"filled,rounded\", fontname=\"Helvetica\", fontsize=10, color=\"#666666\", height=0.3, margin=\"0.08,0.04\"];\n"
        "  edge [color=\"#666666\", arrowsize=0.6, fontname=\"Helvetica\", fontsize=8];\n";
    write_scope(root_, "", "  ");
    for (const Node* node : graph_.nodes())
      for (std::size_t i = 0; i < node->inputs().size(); ++i)
        if (!is_hidden(graph_, *node->inputs()[i].node)) write_edge(node->inputs()[i], *node, i == 0);
    write_legend();
    return std::move(text_) + "}\n";
  }

 private:
  Cluster& cluster_of(std::string_view name) {
    Cluster* scope = &root_;
    for (int depth = 0; depth < kDeepestCluster; ++depth) {
      const std::size_t slash = name.find('/');
      if (slash == std::string_view::npos) break;
      scope = &scope->inner(name.substr(0, slash));
      name.remove_prefix(slash + 1);
    }
    return *scope;
  }

  void write_scope(const Cluster& scope, const std::string& name, const std::string& indent) {
    for (const Node* node : scope.nodes) write_node(*node, indent);
    for (const std::string& part : scope.order) {
      const std::string inner_name = name.empty() ? part : concat(name, "/", part);
      text_ += concat(indent, "subgraph \"cluster_", escaped(inner_name, false), "\" {\n", indent, "  label=\"",
                      escaped(part, true), "\"; style=rounded; color=\"#aaaaaa\"; bgcolor=\"#00000008\";\n");
      write_scope(scope.scopes.at(part), inner_name, indent + "  ");
      text_ += indent + "}\n";
    }
  }

  void write_node(const Node& node, const std::string& indent) {
    const Role role = role_of(node);
    roles_.insert(role);
    const Look& look = look_of(role);
    text_ += concat(indent, id_of(node), " [label=\"", label_of(node), "\", ", look.style, ", fillcolor=\"", look.fill,
                    "\", tooltip=\"", escaped(node.name(), true), " (", node.type(), ")\"",
                    graph_.is_output(node) ? ", penwidth=2.5" : "", "];\n");
  }

  void write_edge(const Output& from, const Node& to, bool main_input) {
    std::string attributes;
    const auto add = [&](const std::string& attribute) {
      attributes += (attributes.empty() ? " [" : ", ") + attribute;
    };
    if (from.index > 0) add(concat("label=\" :", from.index, "\""));
    if (main_input && !is_value(*from.node)) {
      add("weight=8");
      const int rows = rows_to_clear(*from.node, to);
      if (rows > 1) add(concat("minlen=", rows));
    }
    text_ += concat("  ", id_of(*from.node), " -> ", id_of(to), attributes, attributes.empty() ? ";\n" : "];\n");
  }

  /// No node is named "legend:": names may not hold colons.
  void write_legend() {
    if (roles_.empty()) return;
    text_ +=
        "  \"legend:\" [shape=plain, style=\"\", fontsize=9, label=<<table border=\"0\" cellborder=\"1\" cellspacing=\"2\" color=\"#666666\">";
    for (const Role role : roles_)
      text_ += concat("<tr><td bgcolor=\"", look_of(role).fill, "\">", look_of(role).legend, "</td></tr>");
    text_ += "</table>>];\n";
  }

  const Graph& graph_;
  Cluster root_;
  std::set<Role> roles_;
  std::string text_;
};

}  // namespace

std::string graph_to_dot(const Graph& graph) { return Writer(graph).write(); }

}  // namespace miniqat::quantize
