#include "layers/kernels/byte_gradient.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/kernels/instruction_set.h"
#include "core/kernels/onednn_bytes.h"
#include "core/kernels/repeated_row.h"
#include "core/kernels/scratch.h"
#include "core/threads/parallel.h"
#include "layers/kernels/packed_product.h"

namespace miniqat::layers {
namespace {

/// The halves of the key, and what g is multiplied by: 0 or 127 / the largest.
struct ByteRounding {
  std::uint32_t low;
  std::uint32_t high;
  float for_input;
  float for_filter;
};

#define MINIQAT_LOOPS "layers/kernels/byte_gradient_loops.h"
#include "core/kernels/per_instruction_set.h"

constexpr int kByte = 128;
constexpr float kLargestByte = 127;
/// What is smaller counts as 0.
constexpr float kSmallest = 1e-30f;

/// Calls body(picture) for all.
template <class Body>
void for_pictures(std::int64_t pictures, std::int64_t elements, const Body& body) {
  parallel_for(pictures, std::max<std::int64_t>(1, kPointwiseGrain / std::max<std::int64_t>(1, elements)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t p = begin; p < end; ++p) body(p);
               });
}

/// Each pixel of the input gets the sum over the windows that it lies in of what these have.
void spread_over_windows(const onednn::Convolution& c, const std::int32_t* of_windows, std::int32_t* of_pixels) {
  static const auto spread = MINIQAT_PICK(spread_row);
  const std::int64_t rows = c.input[1], columns = c.input[2], width = c.output[2], stride = c.strides[1];
  std::fill_n(of_pixels, rows * columns, 0);
  for (std::int64_t y = 0; y < c.output[1]; ++y)
    for (std::int64_t ky = 0; ky < c.filter[0]; ++ky) {
      const std::int64_t row = y * c.strides[0] - c.pad_before[0] + ky * c.dilations[0];
      if (row < 0 || row >= rows) continue;
      for (std::int64_t kx = 0; kx < c.filter[1]; ++kx) {
        // Column x * stride + left of window x.
        const std::int64_t left = kx * c.dilations[1] - c.pad_before[1];
        const std::int64_t begin = left >= 0 ? 0 : (-left + stride - 1) / stride;
        const std::int64_t end = std::min(width, left >= columns ? 0 : (columns - 1 - left) / stride + 1);
        if (begin < end)
          spread(of_windows + y * width + begin, end - begin, stride,
                 of_pixels + row * columns + begin * stride + left);
      }
    }
}

/// The largest of numbers as bits; what is too small to be told from 0 is 0, what is infinite no number.
float largest_of(std::span<const std::int32_t> bits) {
  const auto largest = std::bit_cast<float>(*std::ranges::max_element(bits));
  if (!std::isfinite(largest)) return std::numeric_limits<float>::quiet_NaN();
  return largest < kSmallest ? 0 : largest;
}

/// As in layers/reference/byte_gradient.h, where it is said why. Lives in `scope`.
std::span<const float> gradient_scales(const PackedProduct& product, std::int64_t columns, ScratchScope& scope) {
  const std::span<float> scales = scope.take<float>(static_cast<std::size_t>(columns));
  const auto is_empty = [&](std::int64_t c) { return product.filter_scale(c) == 1 && product.has_only_zeros(c); };
  float smallest = 1;
  for (std::int64_t c = 0; c < columns; ++c) {
    scales[static_cast<std::size_t>(c)] = product.filter_scale(c);
    if (!(product.filter_scale(c) >= smallest)) smallest = product.filter_scale(c);
  }
  for (std::int64_t c = 0; c < columns && smallest != 1; ++c)
    if (is_empty(c)) scales[static_cast<std::size_t>(c)] = smallest;
  return scales;
}

float inverse_of(float largest) { return largest > 0 ? kLargestByte / largest : 0; }

class ByteGradient {
 public:
  /// `key` and `first` as in byte_backward(). What it makes lives in `scope`.
  ByteGradient(const onednn::Convolution& convolution, const PackedProduct& product, const float* d_y,
               std::uint64_t key, std::int64_t first, ScratchScope& scope);

  void input_gradient(Tensor& d_x) const;
  void filter_gradient(Tensor& d_filter) const;

 private:
  std::int64_t pictures() const { return convolution_.output[0]; }
  std::int64_t columns() const { return convolution_.filter[3]; }
  std::span<const std::int32_t> middle_sums(ScratchScope& scope) const;

  const onednn::Convolution& convolution_;
  const PackedProduct& product_;
  std::span<std::int8_t> for_input_, for_filter_;
  std::span<const float> scales_;
  std::span<float> input_steps_;
  float filter_step_ = 0;
};

ByteGradient::ByteGradient(const onednn::Convolution& convolution, const PackedProduct& product, const float* d_y,
                           std::uint64_t key, std::int64_t first, ScratchScope& scope)
    : convolution_(convolution), product_(product) {
  static const auto by_place = MINIQAT_PICK(largest_by_place);
  static const auto round = MINIQAT_PICK(round_to_bytes);
  const std::int64_t n = convolution.output.elements(), of_picture = n / std::max<std::int64_t>(1, pictures());
  for_input_ = scope.take<std::int8_t>(static_cast<std::size_t>(n));
  for_filter_ = scope.take<std::int8_t>(static_cast<std::size_t>(n));
  input_steps_ = scope.take<float>(static_cast<std::size_t>(pictures()));
  scales_ = gradient_scales(product, columns(), scope);
  const auto scales =
      repeated_row<float>(scope, columns(), [&](std::int64_t c) { return scales_[static_cast<std::size_t>(c)]; });
  const std::int64_t width = std::ssize(scales);
  const std::span<float> largest = scope.take<float>(static_cast<std::size_t>(pictures()));
  for_pictures(pictures(), of_picture, [&](std::int64_t p) {
    ScratchScope own;
    const std::span<std::int32_t> bits = own.filled<std::int32_t>(static_cast<std::size_t>(width), 0);
    by_place(d_y + p * of_picture, of_picture, scales.data(), width, bits.data());
    largest[static_cast<std::size_t>(p)] = largest_of(bits);
    input_steps_[static_cast<std::size_t>(p)] = largest[static_cast<std::size_t>(p)] / kLargestByte;
  });
  float of_all = 0;
  for (const float one : largest) of_all = std::isnan(of_all) || one <= of_all ? of_all : one;
  filter_step_ = of_all / kLargestByte;
  for_pictures(pictures(), of_picture, [&](std::int64_t p) {
    const float own = largest[static_cast<std::size_t>(p)];
    const ByteRounding rounding = {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32),
                                   inverse_of(own), inverse_of(of_all)};
    const std::int64_t begin = p * of_picture;
    if (!std::isnan(own))
      round(d_y + begin, of_picture, scales.data(), width, rounding, static_cast<std::uint32_t>(first + begin),
            for_input_.data() + begin, for_filter_.data() + begin);
    if (std::isnan(own)) std::fill_n(for_input_.data() + begin, of_picture, std::int8_t{0});
    if (std::isnan(of_all)) std::fill_n(for_filter_.data() + begin, of_picture, std::int8_t{0});
  });
}

/// What, by pixel of the input, the middles of the filter's grids add to the sums of its channels.
std::span<const std::int32_t> ByteGradient::middle_sums(ScratchScope& scope) const {
  static const auto weigh = MINIQAT_PICK(weigh_rows);
  const onednn::Convolution& c = convolution_;
  const std::int64_t windows = c.output[1] * c.output[2], pixels = c.input[1] * c.input[2];
  const auto middle = repeated_row<std::int32_t>(scope, columns(), [&](std::int64_t k) { return product_.middle(k); });
  const bool is_one = std::ranges::all_of(middle, [&](std::int32_t number) { return number == middle[0]; });
  const std::span<std::int32_t> of_pixels = scope.take<std::int32_t>(static_cast<std::size_t>(pictures() * pixels)),
                                of_windows = scope.take<std::int32_t>(static_cast<std::size_t>(pictures() * windows));
  for_pictures(pictures(), windows * columns(), [&](std::int64_t p) {
    std::int32_t* of_picture = of_windows.data() + p * windows;
    const std::int8_t* bytes = for_input_.data() + p * windows * columns();
    if (is_one)
      weigh_pixels(bytes, windows, columns(), middle[0], of_picture);
    else
      weigh(bytes, windows, columns(), middle.data(), of_picture);
    spread_over_windows(c, of_picture, of_pixels.data() + p * pixels);
  });
  return of_pixels;
}

void ByteGradient::input_gradient(Tensor& d_x) const {
  static const auto scale = MINIQAT_PICK(scale_sums);
  static const auto add_and_scale = MINIQAT_PICK(add_and_scale_sums);
  const onednn::Convolution& c = convolution_;
  onednn::convolve_backward_input(c, for_input_.data(), product_.filter(), static_cast<std::int32_t*>(d_x.raw()));
  ScratchScope own;
  const std::int64_t channels = c.input[3], pixels = c.input[1] * c.input[2];
  const auto more = product_.needs_sums_of_x() ? middle_sums(own) : std::span<const std::int32_t>();
  auto* values = d_x.data<float>();
  for_pictures(pictures(), pixels * channels, [&](std::int64_t p) {
    const float step = input_steps_[static_cast<std::size_t>(p)];
    float* of_picture = values + p * pixels * channels;
    if (more.empty())
      scale(of_picture, pixels * channels, step);
    else
      add_and_scale(of_picture, pixels, channels, more.data() + p * pixels, step);
  });
}

void ByteGradient::filter_gradient(Tensor& d_filter) const {
  ScratchScope own;
  const std::span<float> scales = own.take<float>(static_cast<std::size_t>(columns()));
  for (std::int64_t c = 0; c < columns(); ++c)
    scales[static_cast<std::size_t>(c)] = filter_step_ * (product_.x_scale() / scales_[static_cast<std::size_t>(c)]);
  onednn::convolve_backward_filter(convolution_, product_.x(), product_.zero_point(), for_filter_.data(), scales.data(),
                                   d_filter.data<float>());
}

}  // namespace

bool has_exact_byte_gradients(const onednn::Convolution& c, const PackedForm& filter) {
  constexpr std::int64_t kMostPixels = 65536;
  const std::int64_t largest = std::max({-filter.lowest, filter.highest, 2 * kByte});
  return onednn::has_signed_bytes() && !c.depthwise && c.output[1] * c.output[2] <= kMostPixels &&
         2 * c.filter[0] * c.filter[1] * c.filter[3] * kByte * largest <= std::numeric_limits<std::int32_t>::max();
}

void byte_backward(const onednn::Convolution& convolution, const PackedFactor& x, const PackedFactor& filter,
                   const float* d_y, std::uint64_t key, std::int64_t first, Tensor* d_x, Tensor* d_filter) {
  ScratchScope scope;
  const PackedProduct product(x, filter, convolution.filter[3], scope);
  const ByteGradient gradient(convolution, product, d_y, key, first, scope);
  if (d_x != nullptr) gradient.input_gradient(*d_x);
  if (d_filter != nullptr) gradient.filter_gradient(*d_filter);
}

}  // namespace miniqat::layers
