#include "core/graph/graph_json.h"
#include "importers/onnx/import.h"
#include "tests/fuzz/readers/reader.h"

namespace miniqat::fuzz::onnx_reader {

MINIQAT_READER(onnx)(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Place place;
  const std::filesystem::path file = place.write("model.onnx", fuzz::text_of(data, size));
  importers::ImportedModel model;
  if (!fuzz::accepts([&] { model = importers::import_onnx(file, {.batch_size = 1}); })) return 0;
  model.graph.verify();
  const std::string written = graph_to_json(model.graph);
  fuzz::require(graph_to_json(graph_from_json(written)) == written, "an imported graph is written and read");
  for (const auto& [name, value] : model.variables)
    fuzz::require(model.graph.at(name).output().shape() == value.shape(), "every variable has its value");
  return 0;
}

}  // namespace miniqat::fuzz::onnx_reader
