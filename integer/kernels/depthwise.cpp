#include "integer/kernels/depthwise.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/kernels/instruction_set.h"
#include "core/kernels/scratch.h"
#include "core/threads/parallel.h"
#include "integer/kernels/product.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace miniqat::integer {
namespace {

#define MINIQAT_WITH_VNNI
#define MINIQAT_LOOPS "integer/kernels/depthwise_loops.h"
#include "core/kernels/per_instruction_set.h"

#define MINIQAT_DEPTHWISE_KERNEL(set) \
  DepthwiseKernel { .name = #set, .block = set::kBlock, .row = &set::depthwise_row }

/// Below this number of products a second thread costs more than it saves.
constexpr std::int64_t kGrain = 100'000;

/// The output channel behind each place of the arrays: lanes of a block hold its channels in the order in which
/// interleaving leaves them. Some are beyond the last.
std::vector<std::int64_t> interleaved_channels(std::int64_t channels, std::int64_t block) {
  std::vector<std::int64_t> order;
  for (std::int64_t first = 0; first < channels; first += block)
    for (std::int64_t v = 0; v < 4; ++v)
      for (std::int64_t i = 0; i < block / 4; ++i) order.push_back(first + i / 4 * 16 + v * 4 + i % 4);
  return order;
}

/// The part of a difference of two bytes that a signed byte can take: two or three of them take all.
std::int32_t signed_byte(std::int32_t value) { return std::clamp(value, -128, 127); }

std::vector<Multiplier> in_order(const std::vector<Multiplier>& multipliers, std::span<const std::int64_t> order) {
  std::vector<Multiplier> ordered;
  for (const std::int64_t o : order)
    ordered.push_back(o < static_cast<std::int64_t>(multipliers.size()) ? multipliers[o] : Multiplier{});
  return ordered;
}

}  // namespace

std::span<const DepthwiseKernel> depthwise_kernels() {
  static const std::vector<DepthwiseKernel> all = MINIQAT_KERNELS(MINIQAT_DEPTHWISE_KERNEL);
  return runnable_kernels(std::span(all));
}

Depthwise::Depthwise(const Layer& layer, const TensorInfo& input, const TensorInfo& output, const Clamp& clamp,
                     const DepthwiseKernel& kernel)
    : Depthwise(layer, input, output, clamp, kernel, interleaved_channels(layer.output_channels(), kernel.block)) {}

Depthwise::Depthwise(const Layer& layer, const TensorInfo& input, const TensorInfo& output, const Clamp& clamp,
                     const DepthwiseKernel& kernel, const std::vector<std::int64_t>& order)
    : kernel_(kernel),
      window_(layer.window),
      channels_(layer.output_channels()),
      multiplier_(layer.filter[3]),
      zero_point_(static_cast<std::uint8_t>(input.grid.zero_point)),
      groups_((window_.rows.window + 3) / 4),
      bias_(Shape{static_cast<std::int64_t>(order.size())}, DType::kInt32),
      requantization_(in_order(by_channel(layer.multipliers, channels_), order),
                      static_cast<std::int64_t>(order.size()), output.grid.zero_point, clamp) {
  const std::int64_t taps = window_.rows.window * window_.columns.window;
  const std::vector<std::int32_t> differences = weight_differences(layer);
  const auto difference = [&](std::int64_t tap, std::int64_t o) { return differences[tap * channels_ + o]; };
  for (std::size_t place = 0; place < order.size(); ++place) {
    const std::int64_t o = order[place];
    if (o >= channels_) continue;
    std::int64_t sum = 0;
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      std::int32_t rest = difference(tap, o);
      sum += rest;
      rest -= signed_byte(rest);
      for (std::int64_t parts = 2; rest != 0; ++parts, rest -= signed_byte(rest)) parts_ = std::max(parts_, parts);
    }
    bias_.data<std::int32_t>()[place] = static_cast<std::int32_t>(layer.bias[o] - input.grid.zero_point * sum);
  }
  const std::int64_t window_columns = window_.columns.window;
  const std::int64_t blocks = static_cast<std::int64_t>(order.size()) / kernel.block;
  weights_ = Tensor(Shape{blocks, parts_, groups_, window_columns, kernel.block, 4}, DType::kInt8);
  for (std::size_t place = 0; place < order.size(); ++place) {
    const std::int64_t o = order[place];
    if (o >= channels_) continue;
    const std::int64_t block = static_cast<std::int64_t>(place) / kernel.block;
    const std::int64_t lane = static_cast<std::int64_t>(place) % kernel.block;
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      const std::int64_t ky = tap / window_columns, kx = tap % window_columns;
      std::int32_t rest = difference(tap, o);
      for (std::int64_t part = 0; part < parts_; ++part) {
        const std::int32_t taken = signed_byte(rest);
        rest -= taken;
        const std::int64_t column = ((block * parts_ + part) * groups_ + ky / 4) * window_columns + kx;
        weights_.data<std::int8_t>()[(column * kernel.block + lane) * 4 + ky % 4] = static_cast<std::int8_t>(taken);
      }
    }
  }
}

std::int64_t Depthwise::scratch_bytes(const Layer& layer) {
  constexpr std::int64_t kLargestBlock = 64;
  const std::int64_t rows = layer.window.rows.window + 3;
  return rows *
         (columns_seen(layer.window.columns) * kLargestBlock + layer.window.columns.input * layer.output_channels());
}

void Depthwise::run_rows(const std::uint8_t* input, std::uint8_t* output, std::int64_t begin, std::int64_t end) const {
  const auto& [rows, columns] = window_;
  const std::int64_t input_row = columns.input * channels_ / multiplier_;
  const std::int64_t expanded_row = columns.input * channels_;
  ScratchScope scope;
  const std::span<std::uint8_t> scratch = scope.take<std::uint8_t>(columns_seen(columns) * groups_ * 4 * kernel_.block);
  const std::span<std::uint8_t> padding = scope.filled<std::uint8_t>(expanded_row, zero_point_);
  const std::span<const std::uint8_t*> seen = scope.filled<const std::uint8_t*>(4 * groups_, padding.data());
  const std::span<std::uint8_t> expanded = scope.take<std::uint8_t>(multiplier_ > 1 ? rows.window * expanded_row : 0);
  const DepthwiseView layer{.weights = weights_.data<std::int8_t>(),
                            .bias = bias_.data<std::int32_t>(),
                            .requantization = requantization_.view(),
                            .channels = channels_,
                            .groups = groups_,
                            .parts = parts_,
                            .columns = columns,
                            .zero_point = zero_point_};
  for (std::int64_t row = begin; row < end; ++row) {
    const std::uint8_t* image = input + row / rows.output * rows.input * input_row;
    for (std::int64_t k = 0; k < rows.window; ++k) {
      const std::int64_t source = rows.source(row % rows.output, k);
      seen[k] = rows.contains(source) ? image + source * input_row : padding.data();
      if (multiplier_ == 1 || !rows.contains(source)) continue;
      std::uint8_t* to = expanded.data() + k * expanded_row;
      for (std::int64_t i = 0; i < expanded_row; ++i) to[i] = seen[k][i / multiplier_];
      seen[k] = to;
    }
    kernel_.row(layer, seen.data(), scratch.data(), output + row * columns.output * channels_);
  }
}

void Depthwise::run(std::int64_t n, StepInputs inputs, std::uint8_t* output) const {
  const std::int64_t row_work = window_.columns.output * channels_ * window_.rows.window * window_.columns.window;
  parallel_for(n * window_.rows.output, kGrain / row_work + 1,
               [&](std::int64_t begin, std::int64_t end) { run_rows(inputs[0], output, begin, end); });
}

}  // namespace miniqat::integer
