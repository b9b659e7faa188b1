#include "quantize/layer_bits.h"

#include <nlohmann/json.hpp>

#include "tests/fuzz/readers/reader.h"

using namespace miniqat;
using namespace miniqat::quantize;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<LayerBits> list, again;
  if (!fuzz::accepts([&] { list = layer_bits_from_json(fuzz::text_of(data, size), "bits.json"); })) return 0;
  const std::string written = layer_bits_to_json(list).dump();
  fuzz::require(fuzz::accepts([&] { again = layer_bits_from_json(written, "copy"); }), "written bits read");
  fuzz::require(again == list, "bits are read as they were written");
  for (const char* layer : {"conv1/Conv2D", "block1/depthwise/Conv2D_Fold", ""})
    fuzz::require(first_match(list, layer) == nullptr || matches_layer(first_match(list, layer)->pattern, layer),
                  "the match matches");
  return 0;
}
