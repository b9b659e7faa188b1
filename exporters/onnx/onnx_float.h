#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/files/safetensors.h"
#include "core/graph/graph.h"
#include "core/tensors/standard.h"
#include "integer/arithmetic.h"

namespace miniqat::exporters {

struct OnnxFloatOptions {
  /// The name of the graph in the file.
  std::string name = "network";
  /// Remarks in the file: the grid of the pictures' bytes, real = scale * (byte - zero point), the classes, or the task
  /// where it is another (as in integer::Model), and what inputs and outputs are standardised with.
  std::optional<integer::Grid> pictures = {};
  std::vector<std::string> class_names = {};
  std::string task = {};
  std::optional<Standard> input_standard = {};
  std::optional<Standard> output_standard = {};
  /// From 13 to 21 (exporters/onnx/opsets.h). Without it the lowest that the content needs: 14 for a HardSwish, 13
  /// otherwise.
  std::optional<std::int64_t> opset = {};
};

/// The bytes of an ONNX model of a float network: what its outputs need, in evaluation. Images are
/// [batch, c, h, w] in the file, the inputs and outputs among them; [n, h, w, c] in the graph. The batch size is free.
/// `variables` holds the value of each variable by name. importers::import_onnx() reads the same network back;
/// docs/exports-onnx.md says which ops. Throws Error naming the node for what ONNX or this exporter does not have: a
/// quantizer, weights that the network computes, a tensor without batch, an op that the opset asked for does not have.
std::string onnx_float(const Graph& graph, const NamedTensors& variables, const OnnxFloatOptions& options = {});

}  // namespace miniqat::exporters
