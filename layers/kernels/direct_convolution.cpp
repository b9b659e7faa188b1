#include "layers/kernels/direct_convolution.h"

#include <algorithm>
#include <span>
#include <utility>

#include "core/kernels/instruction_set.h"
#include "core/kernels/scratch.h"
#include "core/threads/parallel.h"

#if MINIQAT_HAS_INSTRUCTION_SETS
#include <immintrin.h>
#endif

namespace miniqat::layers {
namespace {

/// Channels first .. first + channels, held in one or two vectors.
struct ChannelBlock {
  std::int64_t first;
  std::int64_t channels;
  int lanes;
  int vectors;
};

/// Floats that lie in a row both in the image, from `source` on, and in the weights: one row of a window.
struct TapRun {
  std::int64_t source;
  std::int64_t weights;
};

/// target[p][c] = sum over runs and their floats i of source[p * step + run.source + i] * weights[run.weights + i][c].
struct PixelRow {
  const float* source;
  std::int64_t step;
  std::int64_t pixels;
  std::span<const TapRun> runs;
  std::int64_t run_length;
  /// Rows as wide as all blocks together.
  const float* weights;
  std::int64_t weights_step;
  std::span<const ChannelBlock> blocks;
  float* target;
  std::int64_t target_step;
  /// So many pixels may be written with all lanes of the last block.
  std::int64_t spare;
};

/// totals[t][c] += sum over pixels p of source[taps[t] + where p is] * d_output[p][c].
struct PixelRows {
  const float* source;
  std::int64_t rows;
  std::int64_t row_step;
  std::int64_t columns;
  std::int64_t step;
  std::span<const std::int64_t> taps;
  const float* d_output;
  std::int64_t channels;
  std::span<const ChannelBlock> blocks;
  /// Rows as wide as all blocks together.
  double* totals;
  std::int64_t totals_step;
};

/// target[x][c] = sum over windows w and their pixels k that lie at x of source[w][k][c].
struct Overlap {
  const float* source;
  std::int64_t source_step;
  std::int64_t windows;
  std::int64_t window;
  std::int64_t stride;
  std::int64_t pad_before;
  std::int64_t channels;
  std::int64_t pixels;
  float* target;
};

#define MINIQAT_LOOPS "layers/kernels/direct_convolution_loops.h"
#include "core/kernels/per_instruction_set.h"

/// Multiply-adds for which a further thread is worth waking.
constexpr std::int64_t kGrain = 1 << 18;
/// Floats of input that are worked on together: they stay in the innermost cache.
constexpr std::int64_t kBandFloats = 4096;

int vector_lanes() {
  switch (instruction_set()) {
    case InstructionSet::kAvx512:
      return 16;
    case InstructionSet::kAvx2:
      return 8;
    default:
      return 4;
  }
}

std::int64_t width_of(std::span<const ChannelBlock> blocks) {
  const ChannelBlock& last = blocks.back();
  return last.first + last.lanes * last.vectors;
}

/// Pairs of the widest vectors, then one of the narrowest that holds the rest.
std::span<const ChannelBlock> cut_channels(ScratchScope& scope, std::int64_t channels) {
  const int widest = vector_lanes();
  const std::span<ChannelBlock> blocks = scope.take<ChannelBlock>(channels / (2 * widest) + 1);
  std::size_t used = 0;
  for (std::int64_t first = 0; first < channels; first += 2 * widest) {
    const std::int64_t rest = std::min<std::int64_t>(channels - first, 2 * widest);
    ChannelBlock block = {.first = first, .channels = rest, .lanes = widest, .vectors = rest > widest ? 2 : 1};
    while (block.vectors == 1 && block.lanes > 4 && block.lanes / 2 >= rest) block.lanes /= 2;
    blocks[used++] = block;
  }
  return blocks.first(used);
}

/// The number of a row's pixels that may be written with all lanes: the spare ones fall on channels of the next pixels,
/// which are written after them.
std::int64_t spare_pixels(std::int64_t pixels, std::int64_t channels, std::span<const ChannelBlock> blocks) {
  const std::int64_t width = width_of(blocks);
  if (width == channels) return pixels;
  if (blocks.size() > 1) return 0;
  return std::max<std::int64_t>(0, pixels + 1 - (width + channels - 1) / channels);
}

/// Copies rows of `width` floats into rows of `padded` floats, with zeros at their ends.
void pad_rows(std::int64_t rows, const float* from, std::int64_t width, float* to, std::int64_t padded) {
  for (std::int64_t row = 0; row < rows; ++row) {
    std::copy_n(from + row * width, width, to + row * padded);
    std::fill(to + row * padded + width, to + (row + 1) * padded, 0.0f);
  }
}

/// How the images are cut into bands: some rows of the output with the rows of input that they see.
struct Bands {
  std::int64_t rows_each;
  std::int64_t per_image;
  /// Whether bands have to be copied, with the padding, before anything can be done with them.
  bool copied;
  /// Pixels in a row of input; those of padding on its left; floats in it.
  std::int64_t width;
  std::int64_t left;
  std::int64_t row;
};

Bands cut_bands(const DirectConvolution& c) {
  const auto& [rows, columns] = c.window;
  Bands bands{};
  bands.copied = rows.pad_before + rows.pad_after + columns.pad_before + columns.pad_after > 0;
  bands.left = columns.pad_before;
  bands.width = bands.copied ? (columns.output - 1) * columns.stride + columns.window : columns.input;
  bands.row = bands.width * c.in;
  const std::int64_t fitting = (kBandFloats / bands.row - rows.window) / rows.stride + 1;
  bands.rows_each = std::clamp<std::int64_t>(fitting, 1, rows.output);
  bands.per_image = (rows.output + bands.rows_each - 1) / bands.rows_each;
  return bands;
}

struct Band {
  std::int64_t image;
  /// Rows of output.
  std::int64_t first;
  std::int64_t rows;
  /// The row of input, perhaps above the image, that the first row of output sees first.
  std::int64_t top;
};

Band band_at(const DirectConvolution& c, const Bands& bands, std::int64_t index) {
  const std::int64_t first = index % bands.per_image * bands.rows_each;
  const WindowAxis& rows = c.window.rows;
  return {.image = index / bands.per_image,
          .first = first,
          .rows = std::min(bands.rows_each, rows.output - first),
          .top = rows.source(first, 0)};
}

std::size_t copy_size(const DirectConvolution& c, const Bands& bands) {
  const WindowAxis& rows = c.window.rows;
  return bands.copied ? ((bands.rows_each - 1) * rows.stride + rows.window) * bands.row : 0;
}

/// The band's rows of input from `top` on, bands.row floats each: in place or copied to `copy`, zero where they lie
/// outside of the image.
const float* band_input(const DirectConvolution& c, const Bands& bands, const Band& band, const float* x, float* copy) {
  const auto& [rows, columns] = c.window;
  const std::int64_t width = columns.input * c.in;
  const float* image = x + band.image * rows.input * width;
  if (!bands.copied) return image + band.top * width;
  const std::int64_t left = bands.left * c.in;
  const std::int64_t seen = std::min(width, bands.row - left);
  const std::int64_t bottom = band.top + (band.rows - 1) * rows.stride + rows.window;
  for (std::int64_t y = band.top; y < bottom; ++y) {
    float* to = copy + (y - band.top) * bands.row;
    if (!rows.contains(y)) {
      std::fill_n(to, bands.row, 0.0f);
      continue;
    }
    std::fill_n(to, left, 0.0f);
    std::copy_n(image + y * width, seen, to + left);
    std::fill(to + left + seen, to + bands.row, 0.0f);
  }
  return copy;
}

std::int64_t grain(std::int64_t units, const DirectConvolution& c) {
  const auto& [rows, columns] = c.window;
  const std::int64_t products = c.batch * rows.output * columns.output * rows.window * columns.window * c.in * c.out;
  return std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, products / units));
}

void convolve_band(const DirectConvolution& c, const Bands& bands, const Band& band, const float* input,
                   std::span<TapRun> runs, PixelRow row, float* y) {
  const auto& [rows, columns] = c.window;
  const auto multiply = MINIQAT_PICK(multiply_row);
  for (std::int64_t o = band.first; o < band.first + band.rows; ++o) {
    std::size_t used = 0;
    for (std::int64_t k = 0; k < rows.window; ++k)
      if (rows.contains(rows.source(o, k)))
        runs[used++] = {(rows.source(o, k) - band.top) * bands.row, k * row.run_length * row.weights_step};
    row.source = input;
    row.runs = runs.first(used);
    row.target = y + (band.image * rows.output + o) * columns.output * c.out;
    multiply(row);
  }
}

/// [out] by [kw * in] for every row of the filter, padded to `width`.
void transpose_filter(const DirectConvolution& c, const float* filter, std::int64_t width, float* to) {
  const std::int64_t taps = c.window.columns.window * c.in;
  for (std::int64_t k = 0; k < c.window.rows.window; ++k, filter += taps * c.out)
    for (std::int64_t o = 0; o < c.out; ++o, to += width) {
      for (std::int64_t t = 0; t < taps; ++t) to[t] = filter[t * c.out + o];
      std::fill(to + taps, to + width, 0.0f);
    }
}

/// Offsets of the taps in a band, in the order of the filter.
std::span<const std::int64_t> tap_offsets(ScratchScope& scope, const DirectConvolution& c, const Bands& bands) {
  const std::int64_t taps = c.window.columns.window * c.in;
  const std::span<std::int64_t> offsets = scope.take<std::int64_t>(c.window.rows.window * taps);
  for (std::int64_t t = 0; t < static_cast<std::int64_t>(offsets.size()); ++t)
    offsets[t] = t / taps * bands.row + t % taps;
  return offsets;
}

}  // namespace

void direct_convolution(const DirectConvolution& c, const float* x, const float* filter, float* y) {
  ScratchScope scope;
  const auto& [rows, columns] = c.window;
  const std::int64_t taps = rows.window * columns.window * c.in;
  const std::span<const ChannelBlock> blocks = cut_channels(scope, c.out);
  const std::int64_t width = width_of(blocks);
  const std::span<float> weights = scope.take<float>(taps * width);
  pad_rows(taps, filter, c.out, weights.data(), width);
  const Bands bands = cut_bands(c);
  const PixelRow row = {.source = nullptr,
                        .step = columns.stride * c.in,
                        .pixels = columns.output,
                        .runs = {},
                        .run_length = columns.window * c.in,
                        .weights = weights.data(),
                        .weights_step = width,
                        .blocks = blocks,
                        .target = nullptr,
                        .target_step = c.out,
                        .spare = spare_pixels(columns.output, c.out, blocks)};
  const std::int64_t units = c.batch * bands.per_image;
  parallel_for(units, grain(units, c), [&](std::int64_t begin, std::int64_t end) {
    ScratchScope own;
    const std::span<TapRun> runs = own.take<TapRun>(c.window.rows.window);
    const std::span<float> copy = own.take<float>(copy_size(c, bands));
    for (std::int64_t unit = begin; unit < end; ++unit) {
      const Band band = band_at(c, bands, unit);
      convolve_band(c, bands, band, band_input(c, bands, band, x, copy.data()), runs, row, y);
    }
  });
}

void direct_convolution_backward_input(const DirectConvolution& c, const float* d_y, const float* filter, float* d_x) {
  ScratchScope scope;
  const WindowAxis& rows = c.window.rows;
  const WindowAxis& columns = c.window.columns;
  const std::span<const ChannelBlock> blocks = cut_channels(scope, columns.window * c.in);
  const std::int64_t width = width_of(blocks);
  const std::span<float> weights = scope.take<float>(rows.window * c.out * width);
  transpose_filter(c, filter, width, weights.data());
  const auto multiply = MINIQAT_PICK(multiply_row);
  const auto overlap = MINIQAT_PICK(overlap_row);
  const std::int64_t units = c.batch * rows.input;
  parallel_for(units, grain(units, c), [&](std::int64_t begin, std::int64_t end) {
    ScratchScope own;
    const std::span<TapRun> runs = own.take<TapRun>(rows.window);
    // The last pixel of a window is read with its spare lanes.
    const std::span<float> windows = own.take<float>(columns.output * width + vector_lanes());
    for (std::int64_t unit = begin; unit < end; ++unit) {
      const std::int64_t image = unit / rows.input;
      const std::int64_t position = unit % rows.input + rows.pad_before;
      std::size_t used = 0;
      for (std::int64_t k = position % rows.stride; k < std::min(rows.window, position + 1); k += rows.stride)
        if ((position - k) / rows.stride < rows.output)
          runs[used++] = {(position - k) / rows.stride * columns.output * c.out, k * c.out * width};
      multiply({.source = d_y + image * rows.output * columns.output * c.out,
                .step = c.out,
                .pixels = columns.output,
                .runs = runs.first(used),
                .run_length = c.out,
                .weights = weights.data(),
                .weights_step = width,
                .blocks = blocks,
                .target = windows.data(),
                .target_step = width,
                .spare = columns.output});
      overlap({.source = windows.data(),
               .source_step = width,
               .windows = columns.output,
               .window = columns.window,
               .stride = columns.stride,
               .pad_before = columns.pad_before,
               .channels = c.in,
               .pixels = columns.input,
               .target = d_x + unit * columns.input * c.in});
    }
  });
}

void direct_convolution_backward_filter(const DirectConvolution& c, const float* x, const float* d_y, float* d_filter) {
  ScratchScope scope;
  const WindowAxis& rows = c.window.rows;
  const WindowAxis& columns = c.window.columns;
  const Bands bands = cut_bands(c);
  const std::span<const ChannelBlock> blocks = cut_channels(scope, c.out);
  const std::int64_t width = width_of(blocks);
  const std::span<const std::int64_t> taps = tap_offsets(scope, c, bands);
  const auto tap_count = static_cast<std::int64_t>(taps.size());
  const std::int64_t units = c.batch * bands.per_image;
  const int parts = parallel_parts(units, grain(units, c));
  const auto correlate = MINIQAT_PICK(correlate_rows);
  // Two cache lines between the sums of two threads.
  const std::int64_t stride = tap_count * width + 16;
  const std::span<double> totals = scope.filled<double>(parts * stride, 0.0);
  const std::int64_t row = columns.output * c.out;
  parallel_for(parts, 1, [&](std::int64_t first, std::int64_t last) {
    ScratchScope own;
    const std::span<float> copy = own.take<float>(copy_size(c, bands));
    const std::span<float> last_band = own.take<float>(bands.rows_each * row + 2 * vector_lanes());
    for (std::int64_t part = first; part < last; ++part)
      for (std::int64_t unit = units * part / parts; unit < units * (part + 1) / parts; ++unit) {
        const Band band = band_at(c, bands, unit);
        const float* gradients = d_y + (band.image * rows.output + band.first) * row;
        // Spare lanes must not reach beyond the end, which few small bands may lie before.
        if (width != c.out && (units - unit - 1) * row < vector_lanes()) {
          std::copy_n(gradients, band.rows * row, last_band.data());
          gradients = last_band.data();
        }
        correlate({.source = band_input(c, bands, band, x, copy.data()),
                   .rows = band.rows,
                   .row_step = rows.stride * bands.row,
                   .columns = columns.output,
                   .step = columns.stride * c.in,
                   .taps = taps,
                   .d_output = gradients,
                   .channels = c.out,
                   .blocks = blocks,
                   .totals = totals.data() + part * stride,
                   .totals_step = width});
      }
  });
  for (std::int64_t t = 0; t < tap_count; ++t)
    for (std::int64_t o = 0; o < c.out; ++o) {
      double total = 0;
      for (std::int64_t part = 0; part < parts; ++part) total += totals[part * stride + t * width + o];
      d_filter[t * c.out + o] = static_cast<float>(total);
    }
}

}  // namespace miniqat::layers
