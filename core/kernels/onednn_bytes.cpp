// Products of bytes: which are exact on this machine, and the gradients of a convolution from integers. oneDNN has no
// kernels for these, but (wrong ones, in version 2.6, where strides or padding leave rows of the input without windows)
// for transposed convolutions. So
// - the gradient of the input is a convolution with the turned filter where strides are 1, else a product of matrices
//   whose rows are windows, which are added up where they overlap;
// - that of the filter is a product of such matrices, of some pictures at a time.

#include "core/kernels/onednn_bytes.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>

#include "core/kernels/instruction_set.h"
#include "core/kernels/onednn_kernel.h"
#include "core/kernels/onednn_matrix.h"
#include "core/kernels/scratch.h"
#include "core/team/team.h"
#include "core/threads/parallel.h"

namespace miniqat::onednn {
namespace {

/// The windows of a chunk, in bytes; the second-level cache holds about as much.
constexpr std::int64_t kChunk = std::int64_t{1} << 20;
/// The largest products of unsigned and signed bytes, of which 32 bits hold as many.
constexpr std::int64_t kLargestProduct = 255 * 128;
constexpr std::int64_t kMostProducts = std::numeric_limits<std::int32_t>::max() / kLargestProduct;

/// The convolution as a product of matrices: windows [pixels, terms], filter [terms, columns].
struct Extents {
  std::int64_t pictures;
  /// Windows of one picture.
  std::int64_t pixels;
  std::int64_t terms;
  std::int64_t columns;
  /// Bytes of an input picture.
  std::int64_t picture;

  explicit Extents(const Convolution& c)
      : pictures(c.output[0]),
        pixels(c.output[1] * c.output[2]),
        terms(c.filter[0] * c.filter[1] * c.filter[2]),
        columns(c.filter[3]),
        picture(c.input[1] * c.input[2] * c.input[3]) {}
};

int parts_of_pictures(const Convolution& c) {
  return static_cast<int>(in_team() ? 1 : std::clamp<std::int64_t>(c.output[0], 1, thread_count()));
}

/// Calls body(part, begin, end) for shares of the pictures, one for each thread.
template <class Body>
void for_parts_of_pictures(Operation operation, const Convolution& c, const Body& body) {
  const int parts = parts_of_pictures(c);
  if (parts == 1) return body(0, std::int64_t{0}, c.output[0]);
  Key key(operation);
  for (const Shape* shape : {&c.input, &c.filter, &c.output}) key.append_all(shape->extents());
  thread_local Kept<bool> compiled;
  bool first_time = false;
  compiled.get(key, [&] { return first_time = true; });
  run_independent_parts(parts, first_time,
                        [&](int part) { body(part, c.output[0] * part / parts, c.output[0] * (part + 1) / parts); });
}

/// As std::copy_n, without its call: windows are short.
void copy_bytes(const std::uint8_t* from, std::int64_t n, std::uint8_t* to) {
  constexpr std::int64_t kBlock = 16;
  if (n < kBlock) {
    for (std::int64_t i = 0; i < n; ++i) to[i] = from[i];
    return;
  }
  for (std::int64_t i = 0; i + kBlock <= n; i += kBlock) std::memcpy(to + i, from + i, kBlock);
  std::memcpy(to + n - kBlock, from + n - kBlock, kBlock);
}

/// The parts of a row of windows that lie in a row of the picture; null: above or below it.
void gather_row(const Convolution& c, const Extents& e, const std::uint8_t* row, std::uint8_t zero,
                std::uint8_t* window) {
  const std::int64_t channels = c.filter[2], taps = c.filter[1], width = c.input[2], windows = c.output[2];
  const std::int64_t stride = c.strides[1], dilation = c.dilations[1], length = taps * channels;
  const bool is_dense = dilation == 1 || taps == 1;
  std::int64_t left = -c.pad_before[1];
  for (std::int64_t x = 0; x < windows; ++x, window += e.terms, left += stride) {
    if (row == nullptr) {
      std::fill_n(window, length, zero);
    } else if (is_dense && left >= 0 && left + taps <= width) {
      copy_bytes(row + left * channels, length, window);
    } else {
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        const std::int64_t column = left + tap * dilation;
        if (column < 0 || column >= width)
          std::fill_n(window + tap * channels, channels, zero);
        else
          copy_bytes(row + column * channels, channels, window + tap * channels);
      }
    }
  }
}

void gather_windows(const Convolution& c, const Extents& e, const std::uint8_t* picture, std::uint8_t zero,
                    std::uint8_t* windows) {
  const std::int64_t of_row = c.filter[1] * c.filter[2], rows = c.input[1], length = c.input[2] * c.input[3];
  for (std::int64_t y = 0; y < c.output[1]; ++y)
    for (std::int64_t tap = 0; tap < c.filter[0]; ++tap) {
      const std::int64_t from = y * c.strides[0] - c.pad_before[0] + tap * c.dilations[0];
      gather_row(c, e, from < 0 || from >= rows ? nullptr : picture + from * length, zero,
                 windows + y * c.output[2] * e.terms + tap * of_row);
    }
}

/// The reverse: adds each number of the windows to the pixel that it comes from.
void add_windows(const Convolution& c, const Extents& e, const std::int32_t* windows, std::int32_t* picture) {
  const std::int64_t channels = c.filter[2];
  std::fill_n(picture, e.picture, 0);
  for (std::int64_t y = 0; y < c.output[1]; ++y)
    for (std::int64_t x = 0; x < c.output[2]; ++x)
      for (std::int64_t ky = 0; ky < c.filter[0]; ++ky)
        for (std::int64_t kx = 0; kx < c.filter[1]; ++kx, windows += channels) {
          const std::int64_t row = y * c.strides[0] - c.pad_before[0] + ky * c.dilations[0],
                             column = x * c.strides[1] - c.pad_before[1] + kx * c.dilations[1];
          if (row < 0 || row >= c.input[1] || column < 0 || column >= c.input[2]) continue;
          std::int32_t* pixel = picture + (row * c.input[2] + column) * channels;
          for (std::int64_t i = 0; i < channels; ++i) pixel[i] += windows[i];
        }
}

/// The convolution of d_output that gives d_input; none where strides are not 1, or padding is wider than the filter.
std::optional<Convolution> turned(const Convolution& c) {
  if (c.strides != std::array<std::int64_t, 2>{1, 1}) return std::nullopt;
  Convolution result = {.input = c.output,
                        .filter = {c.filter[0], c.filter[1], c.filter[3], c.filter[2]},
                        .output = c.input,
                        .dilations = c.dilations};
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const std::int64_t reach = (c.filter[static_cast<int>(axis)] - 1) * c.dilations[axis];
    result.pad_before[axis] = reach - c.pad_before[axis];
    result.pad_after[axis] = reach - c.pad_after[axis];
    if (std::min(result.pad_before[axis], result.pad_after[axis]) < 0) return std::nullopt;
  }
  return result;
}

/// [kh, kw, in, out] to [kh, kw, out, in] with both windows' axes reversed.
std::span<const std::int8_t> turned_filter(const Shape& shape, const std::int8_t* filter, ScratchScope& scratch) {
  const std::int64_t taps = shape[0] * shape[1], in = shape[2], out = shape[3];
  const std::span<std::int8_t> result = scratch.take<std::int8_t>(static_cast<std::size_t>(shape.elements()));
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    const std::int8_t* from = filter + (taps - 1 - tap) * in * out;
    std::int8_t* to = result.data() + tap * in * out;
    for (std::int64_t i = 0; i < in; ++i)
      for (std::int64_t o = 0; o < out; ++o) to[o * in + i] = from[i * out + o];
  }
  return result;
}

/// Multiplies matrices, some pictures at a time in each thread.
void add_up_windows(const Convolution& c, const std::int8_t* d_output, const std::int8_t* filter,
                    std::int32_t* d_input) {
  const Extents e(c);
  const auto by_column = MatrixOf<std::int8_t>::row_major(filter, e.terms, e.columns).transposed();
  const auto add = [&](std::int64_t begin, std::int64_t end) {
    ScratchScope scratch;
    const std::int64_t chunk = std::clamp<std::int64_t>(kChunk / (e.pixels * e.terms), 1, end - begin);
    const std::span<std::int32_t> windows =
        scratch.take<std::int32_t>(static_cast<std::size_t>(chunk * e.pixels * e.terms));
    for (std::int64_t first = begin; first < end; first += chunk) {
      const std::int64_t count = std::min(chunk, end - first);
      multiply(MatrixOf<std::int8_t>::row_major(d_output + first * e.pixels * e.columns, count * e.pixels, e.columns),
               by_column, windows.data());
      for (std::int64_t i = 0; i < count; ++i)
        add_windows(c, e, windows.data() + i * e.pixels * e.terms, d_input + (first + i) * e.picture);
    }
  };
  for_parts_of_pictures(Operation::kIntegerBackwardInput, c, [&](int, std::int64_t begin, std::int64_t end) {
    if (begin < end) add(begin, end);
  });
}

/// Adds the bytes of each column: so many rows at a time that 16 bits hold their sums.
template <class Sum>
void add_columns(const std::int8_t* bytes, std::int64_t rows, std::int64_t columns, Sum* sums) {
  constexpr std::int64_t kRows = 256;
  ScratchScope scratch;
  const std::span<std::int16_t> some = scratch.take<std::int16_t>(static_cast<std::size_t>(columns));
  for (std::int64_t first = 0; first < rows; first += kRows) {
    std::ranges::fill(some, std::int16_t{0});
    for (std::int64_t row = first; row < std::min(rows, first + kRows); ++row)
      for (std::int64_t c = 0; c < columns; ++c)
        some[static_cast<std::size_t>(c)] =
            static_cast<std::int16_t>(some[static_cast<std::size_t>(c)] + bytes[row * columns + c]);
    for (std::int64_t c = 0; c < columns; ++c) sums[c] += some[static_cast<std::size_t>(c)];
  }
}

/// What a part of the pictures adds to the sums [terms, columns], and behind them to those of d_output [columns].
template <class Sum>
void add_pictures(const Convolution& c, const std::uint8_t* input, std::uint8_t zero, const std::int8_t* d_output,
                  std::int64_t begin, std::int64_t end, Sum* sums) {
  const Extents e(c);
  const std::int64_t size = e.terms * e.columns;
  const bool gathers = !c.has_windows_of_a_pixel();
  const std::int64_t chunk = std::clamp<std::int64_t>(std::min(kChunk / (e.pixels * e.terms), kMostProducts / e.pixels),
                                                      1, std::max<std::int64_t>(1, end - begin));
  ScratchScope scratch;
  std::uint8_t* windows =
      gathers ? scratch.take<std::uint8_t>(static_cast<std::size_t>(chunk * e.pixels * e.terms)).data() : nullptr;
  const std::span<std::int32_t> product = scratch.take<std::int32_t>(static_cast<std::size_t>(size));
  std::fill_n(sums, size + e.columns, Sum{0});
  for (std::int64_t first = begin; first < end; first += chunk) {
    const std::int64_t count = std::min(chunk, end - first), rows = count * e.pixels;
    for (std::int64_t i = 0; gathers && i < count; ++i)
      gather_windows(c, e, input + (first + i) * e.picture, zero, windows + i * e.pixels * e.terms);
    const std::uint8_t* chunk_windows = gathers ? windows : input + first * e.picture;
    const std::int8_t* bytes = d_output + first * e.pixels * e.columns;
    multiply(MatrixOf<std::uint8_t>::row_major(chunk_windows, rows, e.terms).transposed(),
             MatrixOf<std::int8_t>::row_major(bytes, rows, e.columns), product.data());
    for (std::int64_t i = 0; i < size; ++i) sums[i] += product[static_cast<std::size_t>(i)];
    if (zero != 0) add_columns(bytes, rows, e.columns, sums + size);
  }
}

/// Each thread takes some pictures.
template <class Sum>
void add_up_pictures(const Convolution& c, const std::uint8_t* input, std::uint8_t zero, const std::int8_t* d_output,
                     const float* scales, float* d_filter) {
  const Extents e(c);
  const std::int64_t size = e.terms * e.columns, of_part = size + e.columns;
  const int parts = parts_of_pictures(c);
  ScratchScope scratch;
  const std::span<Sum> sums = scratch.take<Sum>(static_cast<std::size_t>(parts * of_part));
  for_parts_of_pictures(Operation::kIntegerBackwardFilter, c, [&](int part, std::int64_t begin, std::int64_t end) {
    add_pictures(c, input, zero, d_output, begin, end, sums.data() + part * of_part);
  });
  for (int part = 1; part < parts; ++part)
    for (std::int64_t k = 0; k < e.columns; ++k) sums[size + k] += sums[part * of_part + size + k];
  parallel_for(e.terms, std::max<std::int64_t>(1, kPointwiseGrain / e.columns),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i)
                   for (std::int64_t k = 0; k < e.columns; ++k) {
                     Sum sum = sums[i * e.columns + k] - zero * sums[size + k];
                     for (int part = 1; part < parts; ++part) sum += sums[part * of_part + i * e.columns + k];
                     d_filter[i * e.columns + k] = scales[k] * static_cast<float>(sum);
                   }
               });
}

/// The filter has more numbers than there are pixels: each thread takes a part of it.
void share_out_terms(const Convolution& c, const std::uint8_t* input, std::uint8_t zero, const std::int8_t* d_output,
                     const float* scales, float* d_filter) {
  const Extents e(c);
  const std::int64_t rows = e.pictures * e.pixels;
  ScratchScope scratch;
  const std::span<std::int32_t> product = scratch.take<std::int32_t>(static_cast<std::size_t>(e.terms * e.columns)),
                                less = scratch.filled<std::int32_t>(static_cast<std::size_t>(e.columns), 0);
  multiply(MatrixOf<std::uint8_t>::row_major(input, rows, e.terms).transposed(),
           MatrixOf<std::int8_t>::row_major(d_output, rows, e.columns), product.data());
  if (zero != 0) add_columns(d_output, rows, e.columns, less.data());
  for (std::int32_t& sum : less) sum *= zero;
  parallel_for(e.terms, std::max<std::int64_t>(1, kPointwiseGrain / e.columns),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i)
                   for (std::int64_t k = 0; k < e.columns; ++k)
                     d_filter[i * e.columns + k] =
                         scales[k] * static_cast<float>(product[static_cast<std::size_t>(i * e.columns + k)] -
                                                        less[static_cast<std::size_t>(k)]);
               });
}

}  // namespace

int exact_byte() {
#if defined(__x86_64__)
  static const int largest = [] {
    engine();
    return exact_byte_of(dnnl::get_effective_cpu_isa());
  }();
  return largest;
#else
  return 0;
#endif
}

bool has_signed_bytes() {
  constexpr int kByte = 128;
  return exact_byte() == kByte && instruction_set() == InstructionSet::kAvx512;
}

void convolve_backward_input(const Convolution& convolution, const std::int8_t* d_output, const std::int8_t* filter,
                             std::int32_t* d_input) {
  const ComputeScope computing;
  const Extents e(convolution);
  if (convolution.has_windows_of_a_pixel()) {
    multiply(MatrixOf<std::int8_t>::row_major(d_output, e.pictures * e.pixels, e.columns),
             MatrixOf<std::int8_t>::row_major(filter, e.terms, e.columns).transposed(), d_input);
  } else if (const auto forward = turned(convolution)) {
    ScratchScope scratch;
    convolve(*forward, d_output, turned_filter(convolution.filter, filter, scratch).data(), d_input);
  } else {
    add_up_windows(convolution, d_output, filter, d_input);
  }
}

void convolve_backward_filter(const Convolution& convolution, const std::uint8_t* input, std::uint8_t zero,
                              const std::int8_t* d_output, const float* scales, float* d_filter) {
  const ComputeScope computing;
  const Extents e(convolution);
  // With what the zero point takes off.
  const bool fits = 2 * e.pictures * e.pixels <= kMostProducts;
  if (fits && convolution.has_windows_of_a_pixel() && e.pictures * e.pixels <= e.terms * e.columns)
    share_out_terms(convolution, input, zero, d_output, scales, d_filter);
  else if (fits)
    add_up_pictures<std::int32_t>(convolution, input, zero, d_output, scales, d_filter);
  else
    add_up_pictures<std::int64_t>(convolution, input, zero, d_output, scales, d_filter);
}

}  // namespace miniqat::onednn
