#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/files/safetensors.h"
#include "core/graph/graph.h"

namespace miniqat::importers {

/// What became of a node of an ONNX model.
struct ImportedNode {
  std::string op;
  /// The node's name there, or that of its first output.
  std::string name;
  /// The nodes of the graph that compute it, or what else there is to say: "conv1/Conv2D, conv1/BiasAdd".
  std::string becomes;
  /// The names of these nodes; empty where `becomes` names none.
  std::vector<std::string> made = {};
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

  /// Takes the nodes out of it that the graph no longer has, because another output than theirs was chosen.
  void keep_nodes_of(const Graph& graph);
};

struct ImportOptions {
  /// The batch of the graph's inputs. 0: as in the file; 128, where the file leaves it open.
  std::int64_t batch_size = 0;
  /// Height and width of images, and as height the steps of sequences, where the file leaves them open. 0: such files
  /// are refused.
  std::int64_t height = 0;
  std::int64_t width = 0;
  /// Whether a file that has another height or width keeps it; else it is refused.
  bool keeps_size = false;
  /// Whether a final Softmax stays, because no loss has it; a final LogSoftmax is refused then. Else both are left out.
  bool keeps_softmax = false;
  /// The only output that is wanted, by its name in the file: it is the end of the network, whatever other outputs have
  /// behind it. Who asks takes it out of the graph, which has them all. "" or another name: all are wanted.
  std::string output = {};
};

/// A float network: images are [n, h, w, c] here and [n, c, h, w] in the file, sequences [n, steps, c] and [n, c,
/// steps]. Both compute the same up to rounding.
struct ImportedModel {
  Graph graph;
  /// The value of every variable of the graph, by name.
  NamedTensors variables;
  ImportReport report;
  /// What the file calls the graph's outputs, in their order.
  std::vector<std::string> output_names = {};
};

}  // namespace miniqat::importers
