#include "quantize/rewrite/layer_bits.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "core/text/json.h"
#include "tests/fuzz/readers/reader.h"

namespace miniqat::fuzz::layer_bits_reader {

using namespace miniqat::quantize;

MINIQAT_READER(layer_bits)(const std::uint8_t* data, std::size_t size) {
  std::vector<LayerBits> list, again;
  if (!fuzz::accepts([&] { list = layer_bits_from_json(fuzz::text_of(data, size), "bits.json"); })) return 0;
  const std::string written = layer_bits_to_json(list).dump();
  fuzz::require(fuzz::accepts([&] { again = layer_bits_from_json(written, "copy"); }), "written bits read");
  fuzz::require(again == list, "bits are read as they were written");
  const LayerBitsIndex index(list);
  // The patterns themselves are names that come near to what they fit.
  std::vector<std::string_view> layers = {"conv1/Conv2D", "block1/depthwise/Conv2D_Fold", "*block1/*", ""};
  for (const LayerBits& bits : std::span(list).first(std::min<std::size_t>(list.size(), 8)))
    layers.push_back(bits.pattern);
  for (const std::string_view layer : layers) {
    const auto first =
        std::ranges::find_if(list, [&](const LayerBits& bits) { return matches_layer(bits.pattern, layer); });
    fuzz::require(index.first_match(layer) == (first == list.end() ? nullptr : &*first), "the first match is found");
  }
  const std::vector<std::size_t> first_layers = index.first_layers(layers);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto first =
        std::ranges::find_if(layers, [&](std::string_view layer) { return matches_layer(list[i].pattern, layer); });
    fuzz::require(first_layers[i] == static_cast<std::size_t>(first - layers.begin()), "the first layer is found");
  }
  return 0;
}

}  // namespace miniqat::fuzz::layer_bits_reader
