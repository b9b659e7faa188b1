#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace miniqat::cli {

/// A run, or a graph: JSON with a checkpoint, or an ONNX model. "" for none.
struct FloatRequest {
  const std::string& run;
  const std::string& graph;
  /// The value of --image-size for an ONNX model; "" without it.
  const std::string& image_size;
  /// "" for the run's, or the model's weights.
  const std::string& checkpoint;
  /// The opset of the file; without one, the lowest that holds the network.
  std::optional<std::int64_t> opset;
};

struct FloatNetwork {
  /// The ONNX file (exporters/onnx/onnx_float.h).
  std::string bytes;
  std::string name;
  /// About an unfinished run; "" for none.
  std::string note;
};

/// `export --format onnx-float`. Throws UsageError for a graph JSON without a checkpoint or with a size, and Error for
/// files that cannot be read, variables that do not fit, and what the format does not hold.
FloatNetwork float_network(const FloatRequest& request);

}  // namespace miniqat::cli
