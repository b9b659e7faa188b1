// The loops of integer/depthwise.cpp (see core/per_instruction_set.h). In `scratch` lie the four bytes that each
// channel has in a column, for all columns: a window's sums are then one dot() a column, and neighbouring windows share
// the columns.

#include "integer/vector_loops.h"

typedef As<ShortInts>::Bytes Bytes;
constexpr std::int64_t kBlock = sizeof(Bytes);

[[gnu::always_inline]] inline std::int64_t columns_seen_of(const layers::WindowAxis& columns) {
  return (columns.output - 1) * columns.stride + (columns.window - 1) * columns.dilation + 1;
}

/// A block of channels of one column in four rows, interleaved.
[[gnu::always_inline]] inline void interleave(Bytes a, Bytes b, Bytes c, Bytes d, std::uint8_t* to) {
  Bytes low, high;
#pragma GCC unroll 32
  for (int i = 0; i < kBlock; ++i) {
    const int from = i / 16 * 16 + i % 16 / 2;
    low[i] = static_cast<std::uint8_t>(from + i % 2 * kBlock);
    high[i] = static_cast<std::uint8_t>(from + 8 + i % 2 * kBlock);
  }
  using Shorts = As<ShortInts>::Shorts;
  Shorts low_pairs, high_pairs;
#pragma GCC unroll 16
  for (int i = 0; i < kBlock / 2; ++i) {
    const int from = i / 8 * 8 + i % 8 / 2;
    low_pairs[i] = static_cast<std::int16_t>(from + i % 2 * (kBlock / 2));
    high_pairs[i] = static_cast<std::int16_t>(from + 4 + i % 2 * (kBlock / 2));
  }
  const Shorts ab_low = (Shorts)__builtin_shuffle(a, b, low), ab_high = (Shorts)__builtin_shuffle(a, b, high);
  const Shorts cd_low = (Shorts)__builtin_shuffle(c, d, low), cd_high = (Shorts)__builtin_shuffle(c, d, high);
  store(to, __builtin_shuffle(ab_low, cd_low, low_pairs));
  store(to + kBlock, __builtin_shuffle(ab_low, cd_low, high_pairs));
  store(to + 2 * kBlock, __builtin_shuffle(ab_high, cd_high, low_pairs));
  store(to + 3 * kBlock, __builtin_shuffle(ab_high, cd_high, high_pairs));
}

/// Fills scratch with `count` channels of four rows, and with the zero point around them.
void interleave_rows(const DepthwiseView& layer, const std::uint8_t* const* rows, std::int64_t channel,
                     std::int64_t count, std::uint8_t* scratch) {
  const std::int64_t seen = columns_seen_of(layer.columns);
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

/// `taps` vectors of four, `step` bytes apart in scratch, one behind another in the weights.
[[gnu::always_inline]] inline void add_taps(ShortInts (&sum)[4], const std::uint8_t* seen, const std::int8_t* weights,
                                            std::int64_t taps, std::int64_t step) {
  for (std::int64_t k = 0; k < taps; ++k)
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v)
      sum[v] = dot(sum[v], pixels(load<ShortInts>(seen + k * step + v * kBlock)),
                   factors(load<ShortInts>(weights + (k * 4 + v) * kBlock)));
}

/// kTaps columns of the window, or any number for 0.
template <int kTaps>
void row_of_block(const DepthwiseView& layer, const std::int8_t* weights, std::int64_t channel, std::int64_t count,
                  const std::uint8_t* scratch, std::uint8_t* output) {
  const layers::WindowAxis& columns = layer.columns;
  const std::int64_t taps = kTaps > 0 ? kTaps : columns.window;
  const std::int64_t group_bytes = columns_seen_of(columns) * 4 * kBlock;
  for (std::int64_t x = 0; x < columns.output; ++x) {
    ShortInts sum[4];
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) sum[v] = load<ShortInts>(layer.bias + channel + v * (kBlock / 4));
    const std::int8_t* from = weights;
    for (std::int64_t part = 0; part < layer.parts; ++part)
      for (std::int64_t g = 0; g < layer.groups; ++g, from += taps * 4 * kBlock)
        add_taps(sum, scratch + g * group_bytes + x * columns.stride * 4 * kBlock, from, taps,
                 columns.dilation * 4 * kBlock);
    const Requantization::View& q = layer.requantization;
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) sum[v] = requantized(sum[v], q, channel + v * (kBlock / 4));
    store_bytes(output + x * layer.channels + channel, pack_in_lanes(sum[0], sum[1], sum[2], sum[3], q), count);
  }
}

void depthwise_row(const DepthwiseView& layer, const std::uint8_t* const* rows, std::uint8_t* scratch,
                   std::uint8_t* output) {
  const std::int64_t group_bytes = columns_seen_of(layer.columns) * 4 * kBlock;
  const std::int64_t block_bytes = layer.parts * layer.groups * layer.columns.window * 4 * kBlock;
  const std::int8_t* weights = layer.weights;
  for (std::int64_t channel = 0; channel < layer.channels; channel += kBlock, weights += block_bytes) {
    const std::int64_t count = layer.channels - channel < kBlock ? layer.channels - channel : kBlock;
    for (std::int64_t g = 0; g < layer.groups; ++g)
      interleave_rows(layer, rows + 4 * g, channel, count, scratch + g * group_bytes);
    if (layer.columns.window == 3)
      row_of_block<3>(layer, weights, channel, count, scratch, output);
    else
      row_of_block<0>(layer, weights, channel, count, scratch, output);
  }
}
