#include "quantize/rewrite/layer_bits.h"

#include <algorithm>
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
  const LayerBitsIndex index(list);
  for (const char* layer : {"conv1/Conv2D", "block1/depthwise/Conv2D_Fold", ""}) {
    const auto first =
        std::ranges::find_if(list, [&](const LayerBits& bits) { return matches_layer(bits.pattern, layer); });
    fuzz::require(index.first_match(layer) == (first == list.end() ? nullptr : &*first), "the first match is found");
  }
  return 0;
}
