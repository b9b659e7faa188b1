#include <algorithm>
#include <array>

#include "tests/fuzz/maker.h"

namespace miniqat::fuzz {
namespace {

/// For a window that fits into the image.
Json padding_attributes(Maker& make, const std::array<std::int64_t, 2>& window) {
  Json attributes = {{"padding", make.chance(2) ? "SAME" : "VALID"}};
  if (make.chance(3)) {
    attributes = {{"padding", "EXPLICIT"}, {"pads", Json::array()}};
    for (const std::size_t side : {0, 1, 2, 3})
      attributes["pads"].push_back(make.below(static_cast<std::uint64_t>(window[side % 2])));
  }
  return attributes;
}

Json convolution_attributes(Maker& make, const std::array<std::int64_t, 2>& window) {
  Json attributes = padding_attributes(make, window);
  if (make.chance(2)) attributes["strides"] = pair(make.any({1, 1, 2, 3}), make.any({1, 2, 2, 3}));
  if (make.chance(4)) attributes["dilations"] = pair(make.any({1, 2, 3}), make.any({1, 2, 2}));
  return attributes;
}

/// A layer's inputs; in some cases behind quantizers, so that their integers may be multiplied. By a lot of its own:
/// other cases are those of older fuzzers.
std::vector<Output> on_grids(Maker& make, std::vector<Output> inputs) {
  if (mix(make.test().seed, hash_text("on grids")) % 3 == 0)
    for (Output& input : inputs) input = fake_quant(make, input).output();
  return inputs;
}

/// How far a filter reaches over the image.
std::int64_t reach(const Json& attributes, std::size_t axis, std::int64_t window) {
  return 1 + (window - 1) * (attributes.contains("dilations") ? attributes["dilations"][axis].get<std::int64_t>() : 1);
}

}  // namespace

/// So large that other kernels are chosen: a strided depthwise one, a filter's gradient over a large image, Winograd's.
Node& large_convolution(Maker& make, bool depthwise) {
  const Json attributes = {{"padding", make.chance(2) ? "SAME" : "VALID"}, {"strides", pair(2, make.any({1, 2}))}};
  if (depthwise) {
    const std::int64_t c = make.any({33, 64});
    const std::int64_t side = c == 33 ? 179 : 129;
    return make.op("DepthwiseConv2d", {make.input({1, side, side + 1, c}), make.weights({3, 3, c, 1})}, attributes);
  }
  if (make.chance(2)) {
    const std::int64_t in = make.any({16, 32}), out = make.any({16, 32, 48});
    return make.op("Conv2D", {make.input({make.any({3, 4}), 11, 14, in}), make.weights({3, 3, in, out})},
                   {{"padding", attributes["padding"]}});
  }
  return make.op("Conv2D", {make.input({1, 259, 131, 3}), make.weights({3, 3, 3, 32})}, attributes);
}

Node& convolution(Maker& make, bool depthwise) {
  if (make.chance(400)) return large_convolution(make, depthwise);
  constexpr std::int64_t most_products = 600'000;
  for (;;) {
    const std::int64_t side = make.any({1, 1, 1, 3, 3, 5, 2});
    const std::array<std::int64_t, 2> window = {side, make.chance(4) ? make.any({1, 2, 3, 5, 7}) : side};
    Json attributes = convolution_attributes(make, window);
    const std::int64_t n = make.extent(make.chance(5) ? 32 : 6), h = make.extent(19), w = make.extent(19);
    const std::int64_t in = make.channels(), out = depthwise ? make.any({1, 1, 1, 2, 3}) : make.channels();
    const bool same = attributes["padding"] == "SAME";
    if (!same && (h < reach(attributes, 0, window[0]) || w < reach(attributes, 1, window[1]))) continue;
    const std::int64_t stride = attributes.contains("strides") ? attributes["strides"][0].get<std::int64_t>() *
                                                                     attributes["strides"][1].get<std::int64_t>()
                                                               : 1;
    if (n * h * w * in * out * window[0] * window[1] / stride > most_products) continue;
    const Output x = make.input({n, h, w, in});
    return make.op(depthwise ? "DepthwiseConv2d" : "Conv2D",
                   on_grids(make, {x, make.weights({window[0], window[1], in, out})}), attributes);
  }
}

Node& large_matmul(Maker& make) {
  // From so many products on a layer multiplies integers, and rounds gradients. Of more terms 32 bits may not hold the
  // sums.
  const std::int64_t fewest = std::int64_t{1} << (make.chance(4) ? 23 : 20), most_terms = 8192;
  for (;;) {
    const std::int64_t m = make.extent(67) * make.any({1, 1, 5, 16}), n = make.extent(67) * make.any({1, 1, 3});
    const std::int64_t k = make.extent(67) + fewest / (m * n);
    if (k <= most_terms) return make.op("MatMul", on_grids(make, {make.input({m, k}), make.weights({k, n})}));
  }
}

Node& pool(Maker& make, const std::string& type) {
  // Windows of more places than a byte can name, at times.
  const bool vast = make.chance(12);
  const Shape x = vast ? Shape{1, 19, make.any({15, 17}), make.extent(17)} : make.image();
  const auto fitting = [&](int axis) { return std::min(make.any({1, 2, 2, 3, 3, 5, 7}), x[axis]); };
  const std::array<std::int64_t, 2> window = {vast ? make.any({17, 18, 19}) : fitting(1), vast ? 15 : fitting(2)};
  Json attributes = padding_attributes(make, window);
  attributes["window"] = pair(window[0], window[1]);
  if (!make.chance(3)) attributes["strides"] = pair(make.any({1, 1, 2, 3}), make.any({1, 1, 2, 3}));
  return make.op(type, {make.input(x)}, attributes);
}

Node& matmul(Maker& make) {
  const std::int64_t m = make.extent(67), k = make.extent(67) + (make.chance(10) ? 300 : 0), n = make.extent(67);
  const bool a = make.chance(3), b = make.chance(3);
  return make.op("MatMul", {make.input(a ? Shape{k, m} : Shape{m, k}), make.weights(b ? Shape{n, k} : Shape{k, n})},
                 {{"transpose_a", a}, {"transpose_b", b}});
}

Node& batch_norm(Maker& make, Output x) {
  const std::int64_t c = x.shape().channels();
  Json attributes = {{"epsilon", make.chance(2) ? 1e-3 : 0.1}, {"decay", make.chance(2) ? 0.9 : 0.5}};
  make.test().runs = static_cast<int>(1 + make.below(2));
  // A session refuses to train with one number a channel.
  attributes["is_training"] = !make.chance(4) && x.shape().elements() > c;
  if (make.chance(4)) {
    attributes["freeze_delay"] = 2;
    make.test().quantization_step = make.any({0, 1, 2, 3});
  }
  return make.op(
      "BatchNorm",
      {x, make.vector(c, -2, 2), make.vector(c), make.variable({c}, -1, 1, false), make.variable({c}, 0.1, 2, false)},
      attributes);
}

}  // namespace miniqat::fuzz
