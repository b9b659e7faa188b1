#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace miniqat::importers {

/// What became of a node of an ONNX model.
struct ImportedNode {
  std::string op;
  /// The node's name in the model; of a node without one that of its first output.
  std::string name;
  /// The nodes of the graph that compute it, and what else there is to say: "conv1/Conv2D, conv1/BiasAdd".
  std::string becomes;
};

/// What became of an ONNX model.
struct ImportReport {
  std::string source;
  std::string producer;
  std::int64_t opset = 0;
  std::vector<ImportedNode> nodes = {};
  /// Whatever the graph does otherwise than the file: "the final Softmax is left out: ...".
  std::vector<std::string> notes = {};

  /// {"source", "producer", "opset", "nodes": [{"op", "name", "becomes"}], "notes"}.
  nlohmann::ordered_json json() const;
};

}  // namespace miniqat::importers
