// The loops of layers/pool.cpp (see core/kernels/per_instruction_set.h): pixels one by one, channels in vectors of V -
// those of the instruction set, else of four, else single ones. The last vector of a pixel overlaps the one before it.

#include "layers/kernels/float_vector_loops.h"

/// Vectors of one float: GCC has no such type for comparisons.
struct One {};

/// Calls body(vector type, c) so that all channels are seen, some twice; with One where there are fewer than four.
template <class Body>
[[gnu::always_inline]] inline void for_channels(std::int64_t channels, const Body& body) {
  constexpr std::int64_t kLanes = Related<Floats>::kLanes;
  if (channels >= kLanes) {
    std::int64_t c = 0;
    for (; c + kLanes <= channels; c += kLanes) body(static_cast<Floats*>(nullptr), c);
    if (c < channels) body(static_cast<Floats*>(nullptr), channels - kLanes);
  } else if (channels >= 4) {
    std::int64_t c = 0;
    for (; c + 4 <= channels; c += 4) body(static_cast<FourFloats*>(nullptr), c);
    if (c < channels) body(static_cast<FourFloats*>(nullptr), channels - 4);
  } else {
    for (std::int64_t c = 0; c < channels; ++c) body(static_cast<One*>(nullptr), c);
  }
}

/// The largest of the taps y x x of a pixel at `from`, which lies at tap [0, 0]. winner may be null.
template <class V, class Index>
[[gnu::always_inline]] inline void take_largest(const PoolGeometry& g, const float* from, Interval y, Interval x,
                                                float* to, Index* winner) {
  const std::int64_t row = g.window.columns.input * g.channels;
  if constexpr (std::is_same_v<V, One>) {
    std::int64_t place = y.begin * g.window.columns.window + x.begin;
    float best = from[y.begin * row + x.begin * g.channels];
    for (std::int64_t ky = y.begin; ky < y.end; ++ky)
      for (std::int64_t kx = x.begin; kx < x.end; ++kx) {
        const float value = from[ky * row + kx * g.channels];
        if ((value > best) | ((value != value) & (best == best))) {
          best = value;
          place = ky * g.window.columns.window + kx;
        }
      }
    *to = best;
    if (winner) *winner = static_cast<Index>(place);
  } else {
    using Mask = typename Related<V>::Mask;
    V best = load<V>(from + y.begin * row + x.begin * g.channels);
    Mask place = Mask{} + static_cast<std::int32_t>(y.begin * g.window.columns.window + x.begin);
    for (std::int64_t ky = y.begin; ky < y.end; ++ky)
      for (std::int64_t kx = x.begin; kx < x.end; ++kx) {
        const V value = load<V>(from + ky * row + kx * g.channels);
        const Mask larger = (value > best) | ((value != value) & (best == best));
        best = larger ? value : best;
        place = larger ? Mask{} + static_cast<std::int32_t>(ky * g.window.columns.window + kx) : place;
      }
    store(to, best);
    if (winner) store_winners<V>(winner, place);
  }
}

/// Calls take(x at tap [0, 0], taps of rows, taps of columns, place of the output's pixel) for the windows of the rows
/// begin..end of outputs.
template <class Number, class Take>
[[gnu::always_inline]] inline void for_windows(const PoolGeometry& g, const Number* x, std::int64_t begin,
                                               std::int64_t end, const Take& take) {
  const auto& [rows, columns] = g.window;
  for (std::int64_t row = begin; row < end; ++row) {
    const Interval ky = taps_of(rows, row % rows.output);
    const std::int64_t top = row / rows.output * rows.input + rows.source(row % rows.output, 0);
    for (std::int64_t ox = 0; ox < columns.output; ++ox)
      take(x + (top * columns.input + columns.source(ox, 0)) * g.channels, ky, taps_of(columns, ox),
           (row * columns.output + ox) * g.channels);
  }
}

template <class Index>
void max_rows(const PoolGeometry& g, const float* x, float* y, Index* winners, std::int64_t begin, std::int64_t end) {
  const auto window = [&](const float* from, Interval ky, Interval kx, std::int64_t to) __attribute__((always_inline)) {
    const bool two_by_two = ky.begin == 0 && kx.begin == 0 && ky.end == 2 && kx.end == 2;
    for_channels(
        g.channels, [&]<class V>(V*, std::int64_t c) __attribute__((always_inline)) {
          Index* winner = winners ? winners + to + c : nullptr;
          if (two_by_two)
            take_largest<V>(g, from + c, Interval{0, 2}, Interval{0, 2}, y + to + c, winner);
          else
            take_largest<V>(g, from + c, ky, kx, y + to + c, winner);
        });
  };
  for_windows(g, x, begin, end, window);
}

void max_rows_bytes(const PoolGeometry& g, const float* x, float* y, std::uint8_t* winners, std::int64_t begin,
                    std::int64_t end) {
  max_rows(g, x, y, winners, begin, end);
}

void max_rows_words(const PoolGeometry& g, const float* x, float* y, std::int32_t* winners, std::int64_t begin,
                    std::int64_t end) {
  max_rows(g, x, y, winners, begin, end);
}

/// So many codes, a byte each.
template <int kBytes>
using Codes [[gnu::vector_size(kBytes)]] = std::uint8_t;

/// The largest code of the taps y x x, as take_largest(): of one channel, or with V of as many as it holds.
template <class V, class Index>
[[gnu::always_inline]] inline void take_largest_code(const PoolGeometry& g, const std::uint8_t* from, Interval y,
                                                     Interval x, std::uint8_t* to, Index* winner) {
  using Place = std::conditional_t<std::is_same_v<V, std::uint8_t>, Index, V>;
  const std::int64_t row = g.window.columns.input * g.channels;
  V best, code;
  std::memcpy(&best, from + y.begin * row + x.begin * g.channels, sizeof(V));
  Place place = Place{} + static_cast<Index>(y.begin * g.window.columns.window + x.begin);
  for (std::int64_t ky = y.begin; ky < y.end; ++ky)
    for (std::int64_t kx = x.begin; kx < x.end; ++kx) {
      std::memcpy(&code, from + ky * row + kx * g.channels, sizeof(V));
      const auto larger = code > best;
      best = larger ? code : best;
      place = larger ? Place{} + static_cast<Index>(ky * g.window.columns.window + kx) : place;
    }
  std::memcpy(to, &best, sizeof(V));
  if (winner) std::memcpy(winner, &place, sizeof(Place));
}

/// As max_rows(), of codes in place of their numbers.
template <class Index>
void max_code_rows(const PoolGeometry& g, const std::uint8_t* x, std::uint8_t* y, Index* winners, std::int64_t begin,
                   std::int64_t end) {
  // Winners in words: windows of more than 256 taps, which are rare.
  const std::int64_t width = sizeof(Index) > 1 ? 1 : g.channels >= 32 ? 32 : g.channels >= 8 ? 8 : 1;
  const auto window = [&](const std::uint8_t* from, Interval ky, Interval kx, std::int64_t to)
      __attribute__((always_inline)) {
    const auto take = [&]<class V>(V*, std::int64_t c) __attribute__((always_inline)) {
      take_largest_code<V>(g, from + c, ky, kx, y + to + c, winners ? winners + to + c : nullptr);
    };
    for (std::int64_t c = 0; c < g.channels; c += width) {
      const std::int64_t first = std::min(c, g.channels - width);
      if constexpr (sizeof(Index) == 1) {
        if (width == 32) take(static_cast<Codes<32>*>(nullptr), first);
        if (width == 8) take(static_cast<Codes<8>*>(nullptr), first);
      }
      if (width == 1) take(static_cast<std::uint8_t*>(nullptr), first);
    }
  };
  for_windows(g, x, begin, end, window);
}

void max_code_rows_bytes(const PoolGeometry& g, const std::uint8_t* x, std::uint8_t* y, std::uint8_t* winners,
                         std::int64_t begin, std::int64_t end) {
  max_code_rows(g, x, y, winners, begin, end);
}

void max_code_rows_words(const PoolGeometry& g, const std::uint8_t* x, std::uint8_t* y, std::int32_t* winners,
                         std::int64_t begin, std::int64_t end) {
  max_code_rows(g, x, y, winners, begin, end);
}

/// Writes to every input pixel of the rows begin..end the sum over the outputs that see it of
/// term(vector type, index of the output's channel, tap, output row, output column).
template <class Term>
[[gnu::always_inline]] inline void gather_rows(const PoolGeometry& g, float* d_x, std::int64_t begin, std::int64_t end,
                                               const Term& term) {
  const WindowAxis &rows = g.window.rows, &columns = g.window.columns;
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t iy = row % rows.input, top = row / rows.input * rows.output;
    const Interval oys = outputs_of(rows, iy);
    for (std::int64_t ix = 0; ix < columns.input; ++ix) {
      const Interval oxs = g.column_outputs[ix];
      float* to = d_x + (row * columns.input + ix) * g.channels;
      const auto tap = [&](std::int64_t oy, std::int64_t ox) __attribute__((always_inline)) {
        return (iy - rows.source(oy, 0)) * columns.window + (ix - columns.source(ox, 0));
      };
      if (oys.size() == 1 && oxs.size() == 1) {
        // Windows that do not overlap.
        const std::int64_t at = ((top + oys.begin) * columns.output + oxs.begin) * g.channels;
        const std::int64_t only = tap(oys.begin, oxs.begin);
        for_channels(
            g.channels, [&]<class V>(V * type, std::int64_t c) __attribute__((always_inline)) {
              store(to + c, term(type, at + c, only, oys.begin, oxs.begin));
            });
        continue;
      }
      for_channels(
          g.channels, [&]<class V>(V * type, std::int64_t c) __attribute__((always_inline)) {
            std::conditional_t<std::is_same_v<V, One>, float, V> sum = {};
            for (std::int64_t oy = oys.begin; oy < oys.end; ++oy)
              for (std::int64_t ox = oxs.begin; ox < oxs.end; ++ox)
                sum += term(type, ((top + oy) * columns.output + ox) * g.channels + c, tap(oy, ox), oy, ox);
            store(to + c, sum);
          });
    }
  }
}

template <class Index>
void max_backward_rows(const PoolGeometry& g, const Index* winners, const float* d_y, float* d_x, std::int64_t begin,
                       std::int64_t end) {
  gather_rows(
      g, d_x, begin, end,
      [=]<class V>(V*, std::int64_t at, std::int64_t tap, std::int64_t, std::int64_t) __attribute__((always_inline)) {
        if constexpr (std::is_same_v<V, One>) {
          return winners[at] == static_cast<Index>(tap) ? d_y[at] : 0.0f;
        } else {
          const auto won = load_winners<V>(winners + at) == static_cast<std::int32_t>(tap);
          // Bits, not a choice: GCC makes a masked load of that, which is slower.
          return reinterpret_cast<V>(won & reinterpret_cast<typename Related<V>::Mask>(load<V>(d_y + at)));
        }
      });
}

void max_backward_rows_bytes(const PoolGeometry& g, const std::uint8_t* winners, const float* d_y, float* d_x,
                             std::int64_t begin, std::int64_t end) {
  max_backward_rows(g, winners, d_y, d_x, begin, end);
}

void max_backward_rows_words(const PoolGeometry& g, const std::int32_t* winners, const float* d_y, float* d_x,
                             std::int64_t begin, std::int64_t end) {
  max_backward_rows(g, winners, d_y, d_x, begin, end);
}

void average_rows(const PoolGeometry& g, const float* x, float* y, std::int64_t begin, std::int64_t end) {
  const std::int64_t stride = g.window.columns.input * g.channels;
  const auto window = [&](const float* from, Interval ky, Interval kx, std::int64_t to) __attribute__((always_inline)) {
    const float share = 1.0f / static_cast<float>(ky.size() * kx.size());
    for_channels(
        g.channels, [&]<class V>(V*, std::int64_t c) __attribute__((always_inline)) {
          using Sum = std::conditional_t<std::is_same_v<V, One>, float, V>;
          Sum sum = {};
          for (std::int64_t dy = ky.begin; dy < ky.end; ++dy)
            for (std::int64_t dx = kx.begin; dx < kx.end; ++dx)
              sum += load<Sum>(from + dy * stride + dx * g.channels + c) * share;
          store(y + to + c, sum);
        });
  };
  for_windows(g, x, begin, end, window);
}

void average_backward_rows(const PoolGeometry& g, const float* d_y, float* d_x, std::int64_t begin, std::int64_t end) {
  gather_rows(
      g, d_x, begin, end,
      [&]<class V>(V*, std::int64_t at, std::int64_t, std::int64_t oy, std::int64_t ox) __attribute__((always_inline)) {
        const std::int64_t taps = taps_of(g.window.rows, oy).size() * taps_of(g.window.columns, ox).size();
        using Sum = std::conditional_t<std::is_same_v<V, One>, float, V>;
        return load<Sum>(d_y + at) * (1.0f / static_cast<float>(taps));
      });
}
