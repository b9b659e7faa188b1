#include "cli/graph_file.h"

#include <tuple>

#include "importers/onnx/import.h"
#include "training/model_source.h"
#include "training/settings/train_settings.h"
#include "training/settings/usage_error.h"

namespace miniqat::cli {

using namespace training;

Graph read_graph_file(const std::string& path, const std::string& image_size) {
  if (image_size.empty()) return read_network(path);
  if (!is_onnx_file(path)) refuse_ignored("--image-size", concat(path, ", which is not an ONNX model"));
  importers::ImportOptions options;
  std::tie(options.height, options.width) = image_size_from(image_size);
  return importers::import_onnx(path, options).graph;
}

}  // namespace miniqat::cli
