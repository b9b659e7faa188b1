#pragma once

#include <algorithm>

#include "core/tensors/window.h"
#include "integer/ops/action.h"

namespace miniqat::integer {

/// The mean of the pixels in every window, without padding: sum of (x - zero point of x) * multiplier[count - 1]. From
/// [h, w, c] to [oh, ow, c], or to [c] where there is one window: Mean over height and width is this, too.
struct AveragePool {
  static constexpr std::string_view kType = "AveragePool";
  Window2d window;
  /// For each number of pixels from 1 to the window's size: input's scale / (output's scale * number).
  std::vector<Multiplier> multipliers;

  /// Whether there is one window and it is the whole image, every pixel once and no padding: what other formats have
  /// operators of their own for.
  bool is_global() const;

  void apply(std::span<const Operand> x, const Result& y) const;
  void check(const OperationCheck& rules) const;
  static void keys(auto& pool, auto& json) {
    json(pool.window);
    json("multipliers", pool.multipliers);
  }
  Step make_step(const Model& model, const Operation& operation) const;
};

/// The largest integer in every window, padding left out; input and output have one grid.
struct MaxPool {
  static constexpr std::string_view kType = "MaxPool";
  Window2d window;

  void apply(std::span<const Operand> x, const Result& y) const;
  void check(const OperationCheck& rules) const;
  static void keys(auto& pool, auto& json) { json(pool.window); }
  Step make_step(const Model& model, const Operation& operation) const;
};

inline void AveragePool::apply(std::span<const Operand> x, const Result& y) const {
  const std::int64_t channels = x[0].shape[2];
  std::vector<std::int32_t> sums(y.integers.size());
  std::vector<std::int32_t> counts(y.integers.size() / channels);
  for_each_tap(y.n, window, [&](const Tap& tap) {
    ++counts[tap.output];
    for (std::int64_t c = 0; c < channels; ++c)
      sums[tap.output * channels + c] += x[0].less_zero_point(tap.input * channels + c);
  });
  for (std::size_t i = 0; i < sums.size(); ++i) y.put(i, sums[i], multipliers[counts[i / channels] - 1]);
}

inline void MaxPool::apply(std::span<const Operand> x, const Result& y) const {
  const std::int64_t channels = x[0].shape[2];
  std::ranges::fill(y.integers, std::uint8_t{0});
  for_each_tap(y.n, window, [&](const Tap& tap) {
    for (std::int64_t c = 0; c < channels; ++c) {
      std::uint8_t& largest = y.integers[tap.output * channels + c];
      largest = std::max(largest, x[0].integers[tap.input * channels + c]);
    }
  });
}

}  // namespace miniqat::integer
