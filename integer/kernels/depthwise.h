#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/tensors/tensor.h"
#include "integer/kernels/requantization.h"
#include "integer/model.h"

namespace miniqat::integer {

/// A depthwise layer, as the loops over its channels see it. Channels come in blocks of as many as a vector has bytes;
/// four vectors of 32-bit sums make a block, in the order in which bytes are interleaved. The window's rows come in
/// groups of four, the last filled up with weights of 0: a lane holds the four bytes that a channel has in a column.
/// Nothing here is owned.
struct DepthwiseView {
  /// [block][part][group][column of the window][4 vectors of lanes of four bytes].
  const std::int8_t* weights;
  /// An element for each lane of each block, as the arrays of `requantization` have; those beyond the last channel
  /// are 0.
  const std::int32_t* bias;
  Requantization::View requantization;
  /// The channels of the output.
  std::int64_t channels;
  /// The groups of four rows of the window.
  std::int64_t groups;
  /// 1, or how many signed bytes some weights less their zero point are the sum of.
  std::int64_t parts;
  WindowAxis columns;
  /// The input's; its padding has this value.
  std::uint8_t zero_point;
};

/// The loops for one kind of CPU. All give the same integers, and none throws.
struct DepthwiseKernel {
  std::string_view name;
  /// Channels of a block.
  std::int64_t block;
  /// One row of the output, [columns.output, channels]. `rows`: four pointers a group to rows of the image, each
  /// [columns.input, channels] (an input channel as often as there are outputs of it). Pointers on padding lead to a
  /// row of the zero point, those beyond the window to any row. `scratch`: columns_seen(columns) * groups * 4 * block
  /// bytes.
  void (*row)(const DepthwiseView& layer, const std::uint8_t* const* rows, std::uint8_t* scratch, std::uint8_t* output);
};

/// Columns of the image and its padding that a row of windows reaches over.
[[gnu::always_inline]] inline std::int64_t columns_seen(const WindowAxis& columns) {
  return (columns.output - 1) * columns.stride + (columns.window - 1) * columns.dilation + 1;
}

/// All that this CPU can run (as far as MINIQAT_MAX_ISA allows), the best first.
std::span<const DepthwiseKernel> depthwise_kernels();

/// A depthwise convolution, channels side by side in vectors. From [h, w, in] to [oh, ow, in * multiplier].
class Depthwise {
 public:
  /// For a DepthwiseConv2d whose scratch_bytes() are within kMostScratch. `kernel` must stay; all else is copied.
  Depthwise(const Layer& layer, const TensorInfo& input, const TensorInfo& output, const Clamp& clamp,
            const DepthwiseKernel& kernel = depthwise_kernels().front());

  void run(std::int64_t n, StepInputs inputs, std::uint8_t* output) const;
  /// About the most bytes that a thread needs while it runs.
  static std::int64_t scratch_bytes(const Layer& layer);

 private:
  /// `order`: the channel at each place of the arrays.
  Depthwise(const Layer& layer, const TensorInfo& input, const TensorInfo& output, const Clamp& clamp,
            const DepthwiseKernel& kernel, const std::vector<std::int64_t>& order);
  void run_rows(const std::uint8_t* input, std::uint8_t* output, std::int64_t begin, std::int64_t end) const;

  const DepthwiseKernel& kernel_;
  Window2d window_;
  /// Outputs; `multiplier_` of them for each input channel.
  std::int64_t channels_;
  std::int64_t multiplier_;
  std::uint8_t zero_point_;
  std::int64_t groups_;
  std::int64_t parts_ = 1;
  Tensor weights_, bias_;
  Requantization requantization_;
};

}  // namespace miniqat::integer
