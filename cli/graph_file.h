#pragma once

#include <string>

#include "core/graph/graph.h"

namespace miniqat::cli {

/// The help of --image-size, for commands that read a graph file.
inline constexpr const char* kImageSizeHelp =
    "of an ONNX model that leaves height and width of images open: HxW, or one number for both";

/// The network of a graph JSON file or of an ONNX model; `image_size` is the value of --image-size, "" without it.
/// Throws UsageError for a size beside a graph JSON, and what read_network() and import_onnx() throw.
Graph read_graph_file(const std::string& path, const std::string& image_size);

}  // namespace miniqat::cli
