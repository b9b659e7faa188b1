#include "importers/onnx/report.h"

#include "core/text/json.h"
#include "core/text/quote.h"

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

}  // namespace miniqat::importers
