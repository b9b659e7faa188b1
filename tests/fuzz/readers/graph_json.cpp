#include "core/graph/graph_json.h"

#include "layers/layers.h"
#include "quantize/fake_quant.h"
#include "quantize/quantize.h"
#include "tests/fuzz/readers/reader.h"

namespace miniqat::fuzz::graph_json_reader {

MINIQAT_READER(graph_json)(const std::uint8_t* data, std::size_t size) {
  static const bool registered = (layers::register_ops(), quantize::register_ops(), true);
  (void)registered;
  Graph graph;
  if (!fuzz::accepts([&] { graph = graph_from_json(fuzz::text_of(data, size)); })) return 0;
  graph.verify();
  const std::string written = graph_to_json(graph);
  Graph again;
  fuzz::require(fuzz::accepts([&] { again = graph_from_json(written); }), "a written graph reads");
  fuzz::require(graph_to_json(again) == written, "a graph is read as it was written");
  return 0;
}

}  // namespace miniqat::fuzz::graph_json_reader
