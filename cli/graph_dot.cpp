#include "cli/graph_dot.h"

#include "core/error.h"
#include "core/source_ops.h"
#include "quantize/fake_quant.h"

namespace miniqat::cli {
namespace {

struct Look {
  const char* shape;
  const char* fill;
};

Look look_of(const Node& node) {
  if (node.as<quantize::FakeQuant>() != nullptr) return {"box", "#ffd28a"};
  if (node.as<Placeholder>() != nullptr) return {"ellipse", "#cfe8cf"};
  if (node.as<Variable>() != nullptr || node.as<Constant>() != nullptr) return {"ellipse", "#eeeeee"};
  if (node.op().multiply_adds(node.input_specs()) > 0) return {"box", "#b9d3f0"};
  return {"box", "#ffffff"};
}

std::string label_of(const Node& node) {
  std::string label = concat(node.name(), "\\n", node.type());
  if (const auto* quantizer = node.as<quantize::FakeQuant>()) {
    const quantize::FakeQuantAttributes& attributes = quantizer->attributes();
    label += concat(" ", attributes.bits, " bits", attributes.per_channel ? ", per channel" : "");
  } else if (!node.output_specs().empty()) {
    label += " " + node.output_specs()[0].shape.str();
  }
  return label;
}

/// A quantizer's min and max say nothing in a picture.
bool is_range(const Node& node) {
  if (node.as<Variable>() == nullptr || node.uses().empty()) return false;
  for (const Use& use : node.uses())
    if (use.node->as<quantize::FakeQuant>() == nullptr || use.input == 0) return false;
  return true;
}

}  // namespace

std::string graph_to_dot(const Graph& graph) {
  std::string text =
      "digraph miniqat {\n"
      "  rankdir=TB;\n"
      "  node [style=\"filled,rounded\", fontname=\"Helvetica\", fontsize=10, color=\"#666666\"];\n"
      "  edge [color=\"#666666\", arrowsize=0.7];\n";
  for (const Node* node : graph.nodes()) {
    if (is_range(*node)) continue;
    const Look look = look_of(*node);
    text += concat("  \"", node->name(), "\" [label=\"", label_of(*node), "\", shape=", look.shape, ", fillcolor=\"",
                   look.fill, "\"];\n");
  }
  for (const Node* node : graph.nodes())
    for (const Output& input : node->inputs())
      if (!is_range(*input.node)) text += concat("  \"", input.node->name(), "\" -> \"", node->name(), "\";\n");
  return text + "}\n";
}

}  // namespace miniqat::cli
