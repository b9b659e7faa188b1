// The loops of integer/kernels/depthwise.cpp (see core/kernels/per_instruction_set.h). In `scratch` lie the four bytes
// that each channel has in a column, for all columns: a window's sums are then one dot() a column, and neighbouring
// windows share the columns.

#include "integer/kernels/vector_loops.h"

using Bytes = As<ShortInts>::Bytes;
constexpr std::int64_t kBlock = sizeof(Bytes);

/// An order for shuffle(): elements of two vectors by turns, of every 16 bytes (kLane elements) of each the half that
/// begins at kFrom.
template <int kLane, int kFrom>
struct Interleaved {
  static constexpr int at(int i, int count) { return i / kLane * kLane + kFrom + i % kLane / 2 + i % 2 * count; }
};

/// A block of channels of one column in four rows, interleaved.
[[gnu::always_inline]] inline void interleave(Bytes a, Bytes b, Bytes c, Bytes d, std::uint8_t* to) {
  using Shorts = As<ShortInts>::Shorts;
  const Shorts ab_low = (Shorts)shuffle<Interleaved<16, 0>>(a, b), ab_high = (Shorts)shuffle<Interleaved<16, 8>>(a, b);
  const Shorts cd_low = (Shorts)shuffle<Interleaved<16, 0>>(c, d), cd_high = (Shorts)shuffle<Interleaved<16, 8>>(c, d);
  store(to, shuffle<Interleaved<8, 0>>(ab_low, cd_low));
  store(to + kBlock, shuffle<Interleaved<8, 4>>(ab_low, cd_low));
  store(to + 2 * kBlock, shuffle<Interleaved<8, 0>>(ab_high, cd_high));
  store(to + 3 * kBlock, shuffle<Interleaved<8, 4>>(ab_high, cd_high));
}

/// Fills scratch with `count` channels of four rows, and with the zero point around them.
void interleave_rows(const DepthwiseView& layer, const std::uint8_t* const* rows, std::int64_t channel,
                     std::int64_t count, std::uint8_t* scratch) {
  const std::int64_t seen = columns_seen(layer.columns);
  const std::int64_t first = -layer.columns.pad_before;
  for (std::int64_t x = 0; x < seen; ++x, scratch += 4 * kBlock) {
    const std::int64_t source = first + x;
    if (source < 0 || source >= layer.columns.input) {
      const Bytes padding = Bytes{} + layer.zero_point;
      for (int v = 0; v < 4; ++v) store(scratch + v * kBlock, padding);
      continue;
    }
    const std::int64_t place = source * layer.channels + channel;
    interleave(load_bytes<Bytes>(rows[0] + place, count), load_bytes<Bytes>(rows[1] + place, count),
               load_bytes<Bytes>(rows[2] + place, count), load_bytes<Bytes>(rows[3] + place, count), scratch);
  }
}

struct AnyWindow {
  explicit AnyWindow(const DepthwiseView& layer)
      : parts(layer.parts),
        groups(layer.groups),
        taps(layer.columns.window),
        stride(layer.columns.stride),
        dilation(layer.columns.dilation) {}
  std::int64_t parts, groups, taps, stride, dilation;
};

/// The windows of most networks: 3 columns next to each other, at most four rows. Constants spare the loops most of
/// their address arithmetic.
template <int kParts, int kStride>
struct ThreeColumns {
  explicit ThreeColumns(const DepthwiseView&) {}
  static constexpr std::int64_t parts = kParts, groups = 1, taps = 3, stride = kStride, dilation = 1;
};

/// A block of channels of kPixels neighbouring pixels, which share what they see.
template <int kPixels, class Window>
[[gnu::always_inline]] inline void pixels_of_block(const DepthwiseView& layer, const Window& window,
                                                   const std::int8_t* weights, std::int64_t channel, std::int64_t count,
                                                   const std::uint8_t* scratch, std::uint8_t* output) {
  const std::int64_t group_bytes = columns_seen(layer.columns) * 4 * kBlock;
  const Requantization::View& q = layer.requantization;
  ShortInts sum[kPixels][4];
#pragma GCC unroll 4
  for (int v = 0; v < 4; ++v) {
    const ShortInts bias = load<ShortInts>(layer.bias + channel + v * (kBlock / 4));
#pragma GCC unroll 4
    for (int i = 0; i < kPixels; ++i) sum[i][v] = bias;
    const std::int8_t* factor = weights + v * kBlock;
#pragma GCC unroll 2
    for (std::int64_t part = 0; part < window.parts; ++part)
      for (std::int64_t g = 0; g < window.groups; ++g) {
        const std::uint8_t* seen = scratch + g * group_bytes + v * kBlock;
#pragma GCC unroll 3
        for (std::int64_t k = 0; k < window.taps; ++k, factor += 4 * kBlock) {
          const Factors<ShortInts> f = factors(load<ShortInts>(factor));
#pragma GCC unroll 4
          for (int i = 0; i < kPixels; ++i) {
            const std::int64_t place = (i * window.stride + k * window.dilation) * 4 * kBlock;
            sum[i][v] = dot(sum[i][v], pixels(load<ShortInts>(seen + place)), f);
          }
        }
      }
    requantize<kPixels, 4>(&sum[0][v], q, channel + v * (kBlock / 4));
  }
#pragma GCC unroll 4
  for (int i = 0; i < kPixels; ++i)
    store_bytes(output + i * layer.channels, pack_in_lanes(sum[i][0], sum[i][1], sum[i][2], sum[i][3], q), count);
}

template <class Window>
void row_of_block(const DepthwiseView& layer, const std::int8_t* weights, std::int64_t channel, std::int64_t count,
                  const std::uint8_t* scratch, std::uint8_t* output) {
  const Window window(layer);
  const std::int64_t pixel_bytes = window.stride * 4 * kBlock;
  output += channel;
  std::int64_t x = 0;
  for (; x + 4 <= layer.columns.output; x += 4)
    pixels_of_block<4>(layer, window, weights, channel, count, scratch + x * pixel_bytes, output + x * layer.channels);
  for (; x < layer.columns.output; ++x)
    pixels_of_block<1>(layer, window, weights, channel, count, scratch + x * pixel_bytes, output + x * layer.channels);
}

/// The loops that suit the layer.
auto row_of_block_for(const DepthwiseView& layer) {
  const WindowAxis& columns = layer.columns;
  const bool usual = columns.window == 3 && columns.dilation == 1 && layer.groups == 1 && layer.parts <= 2;
  if (usual && columns.stride == 1)
    return layer.parts == 1 ? &row_of_block<ThreeColumns<1, 1>> : &row_of_block<ThreeColumns<2, 1>>;
  if (usual && columns.stride == 2)
    return layer.parts == 1 ? &row_of_block<ThreeColumns<1, 2>> : &row_of_block<ThreeColumns<2, 2>>;
  return &row_of_block<AnyWindow>;
}

void depthwise_row(const DepthwiseView& layer, const std::uint8_t* const* rows, std::uint8_t* scratch,
                   std::uint8_t* output) {
  const std::int64_t group_bytes = columns_seen(layer.columns) * 4 * kBlock;
  const std::int64_t block_bytes = layer.parts * layer.groups * layer.columns.window * 4 * kBlock;
  const std::int8_t* weights = layer.weights;
  const auto row_of_block = row_of_block_for(layer);
  for (std::int64_t channel = 0; channel < layer.channels; channel += kBlock, weights += block_bytes) {
    const std::int64_t count = layer.channels - channel < kBlock ? layer.channels - channel : kBlock;
    for (std::int64_t g = 0; g < layer.groups; ++g)
      interleave_rows(layer, rows + 4 * g, channel, count, scratch + g * group_bytes);
    row_of_block(layer, weights, channel, count, scratch, output);
  }
}
