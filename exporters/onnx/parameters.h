#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/files/safetensors.h"
#include "core/graph/graph.h"
#include "exporters/onnx/graph.h"

namespace miniqat::exporters {

// Not for users of the library: the variables and constants of a float network as ONNX's constants.

/// Whether a tensor is a Variable or a Constant.
bool is_parameter(const Output& tensor);

/// Each is written once in each form, under its name with '.' for '/', from which the importer makes the name again.
class Parameters {
 public:
  Parameters(OnnxGraph& graph, const NamedTensors& variables) : graph_(graph), variables_(variables) {}

  /// As it is.
  std::string plain(const Output& tensor) { return written(tensor, "", {}); }
  /// A filter [kh, kw, in, out] as [out, in, kh, kw].
  std::string filter(const Output& tensor) { return written(tensor, "filter", {3, 2, 0, 1}); }
  /// A depthwise filter [kh, kw, in, multiplier] as [in * multiplier, 1, kh, kw].
  std::string depthwise_filter(const Output& tensor);
  /// To be combined with a tensor of `rank` axes: for images as [n, c, h, w], or a part of these axes.
  std::string operand(const Output& tensor, int rank);

 private:
  /// With its axes, of which it has as many, in that order (as they are where `axes` is empty), under other extents if
  /// some are given.
  std::string written(const Output& tensor, const std::string& form, const std::vector<std::int64_t>& axes,
                      std::vector<std::int64_t> extents = {});

  OnnxGraph& graph_;
  const NamedTensors& variables_;
  /// By node and form.
  std::map<std::pair<const Node*, std::string>, std::string> names_;
};

}  // namespace miniqat::exporters
