#include "importers/onnx/imported_model.h"

#include "core/text/json.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"

namespace miniqat::importers {

nlohmann::ordered_json ImportReport::json() const {
  nlohmann::ordered_json json = {{"source", printable(source)},
                                 {"producer", printable(producer)},
                                 {"opset", opset},
                                 {"nodes", nlohmann::ordered_json::array()},
                                 {"notes", notes}};
  for (const ImportedNode& node : nodes)
    json["nodes"].push_back({{"op", printable(node.op)}, {"name", printable(node.name)}, {"becomes", node.becomes}});
  return json;
}

void ImportReport::keep_nodes_of(const Graph& graph) {
  for (ImportedNode& node : nodes)
    if (std::erase_if(node.made, [&](const std::string& name) { return graph.find(name) == nullptr; }) > 0)
      node.becomes = node.made.empty() ? "nothing: only other outputs need it" : joined(node.made);
}

}  // namespace miniqat::importers
