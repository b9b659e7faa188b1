#include "layers/kernels/winograd.h"

#include <algorithm>
#include <array>
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

#define MINIQAT_LOOPS "layers/kernels/winograd_loops.h"
#include "core/kernels/per_instruction_set.h"

/// Multiply-adds for which a further thread is worth waking.
constexpr std::int64_t kWorthAThread = 1 << 18;
/// Patches whose transformed numbers are multiplied together: they stay in the first or second cache. A multiple of the
/// rows of all tiles of products.
constexpr std::int64_t kGroup = 24;
/// Transformed numbers of a patch.
constexpr std::int64_t kNumbers = 16;

/// Images [batch, height, width, channels].
struct Pictures {
  std::int64_t height;
  std::int64_t width;
  std::int64_t channels;
};

/// The output cut into patches of 2x2 pixels, each with its patch of 4x4 in the input, padded by (top, left).
struct Patches {
  std::int64_t batch;
  Pictures in;
  Pictures out;
  std::int64_t top;
  std::int64_t left;

  std::int64_t rows() const { return (out.height + 1) / 2; }
  std::int64_t columns() const { return (out.width + 1) / 2; }
  std::int64_t count() const { return batch * rows() * columns(); }
  std::int64_t groups() const { return (count() + kGroup - 1) / kGroup; }
  std::int64_t grain() const {
    return std::max<std::int64_t>(1, kWorthAThread / (kGroup * kNumbers * in.channels * out.channels));
  }
  /// Between the numbers of a patch in memory: of different cache sets.
  std::int64_t in_step() const { return kGroup * in.channels + 16; }
  std::int64_t out_step() const { return kGroup * out.channels + 16; }
};

/// A place in the pictures, perhaps on the padding.
struct Place {
  std::int64_t image;
  std::int64_t y;
  std::int64_t x;
};

/// Where a group's patches lie in the output.
struct Group {
  std::int64_t count = 0;
  std::array<Place, kGroup> corners;
};

/// The group from patch `first` on; empty behind the last one.
Group group_at(const Patches& patches, std::int64_t first) {
  const std::int64_t columns = patches.columns(), rows = patches.rows(), row = first / columns;
  Group group{.count = std::clamp<std::int64_t>(patches.count() - first, 0, kGroup), .corners = {}};
  Place at = {row / rows, row % rows * 2, first % columns * 2};
  for (std::int64_t i = 0; i < group.count; ++i) {
    group.corners[i] = at;
    at.x += 2;
    if (at.x < 2 * columns) continue;
    at.x = 0;
    at.y += 2;
    if (at.y < 2 * rows) continue;
    at.y = 0;
    ++at.image;
  }
  return group;
}

std::int64_t offset_of(const Pictures& pictures, const Place& at) {
  return ((at.image * pictures.height + at.y) * pictures.width + at.x) * pictures.channels;
}

bool contains(const Pictures& pictures, const Place& at, std::int64_t extent) {
  return at.y >= 0 && at.y + extent <= pictures.height && at.x >= 0 && at.x + extent <= pictures.width;
}

/// Square pixels of a picture, in place or copied; `row` floats from one row to the next.
struct Square {
  const float* pixels;
  std::int64_t row;
};

/// What lies outside of the picture is zero.
Square square_at(const Pictures& pictures, const float* numbers, const Place& at, std::int64_t extent, float* copy) {
  const std::int64_t channels = pictures.channels;
  if (contains(pictures, at, extent)) return {numbers + offset_of(pictures, at), pictures.width * channels};
  float* to = copy;
  for (std::int64_t y = at.y; y < at.y + extent; ++y)
    for (std::int64_t x = at.x; x < at.x + extent; ++x, to += channels)
      if (const Place pixel = {at.image, y, x}; contains(pictures, pixel, 1))
        std::copy_n(numbers + offset_of(pictures, pixel), channels, to);
      else
        std::fill_n(to, channels, 0.0f);
  return {copy, extent * channels};
}

/// Asks for 2x2 pixels that will be read or written soon: without it steps wait for memory up to a third of the time.
template <bool kWritten>
void prefetch(const Pictures& pictures, const float* numbers, const Place& at) {
  constexpr std::int64_t kLine = 16;
  // GCC drops calls of a function that has no other effect.
  __asm__ volatile("");
  for (std::int64_t y = at.y; y < std::min(at.y + 2, pictures.height); ++y) {
    const float* from = numbers + offset_of(pictures, {at.image, y, at.x});
    for (std::int64_t i = 0; i < std::min<std::int64_t>(2, pictures.width - at.x) * pictures.channels; i += kLine)
      __builtin_prefetch(from + i, kWritten ? 1 : 0);
  }
}

/// The part of a group's patches that is asked for beside one of 16 products.
template <class Prefetch>
void spread(std::int64_t number, const Group& group, const Prefetch& prefetch) {
  for (std::int64_t i = group.count * number / kNumbers; i < group.count * (number + 1) / kNumbers; ++i)
    prefetch(group.corners[i]);
}

/// What the transforms of a group's input are written to.
struct Transformed {
  std::span<float> copy;
  std::span<float> numbers;
};

Transformed take_transformed(ScratchScope& scope, const Patches& patches) {
  return {scope.take<float>(16 * patches.in.channels), scope.filled<float>(kNumbers * patches.in_step(), 0.0f)};
}

void transform_group(const Patches& patches, const float* x, const Group& group, const Transformed& to) {
  const auto transform = MINIQAT_PICK(transform_patch);
  for (std::int64_t i = 0; i < group.count; ++i) {
    const Place& out = group.corners[i];
    const Place at = {out.image, out.y - patches.top, out.x - patches.left};
    const Square square = square_at(patches.in, x, at, 4, to.copy.data());
    transform(square.pixels, square.row, patches.in.channels, to.numbers.data() + i * patches.in.channels,
              patches.in_step());
  }
}

/// The output of a group from its products.
void write_group(const Patches& patches, const float* products, const Group& group, float* copy, float* y) {
  const auto transform = MINIQAT_PICK(transform_products);
  const Pictures& out = patches.out;
  for (std::int64_t i = 0; i < group.count; ++i) {
    const Place& at = group.corners[i];
    const float* from = products + i * out.channels;
    if (contains(out, at, 2)) {
      transform(from, patches.out_step(), y + offset_of(out, at), out.width * out.channels, out.channels);
      continue;
    }
    transform(from, patches.out_step(), copy, 2 * out.channels, out.channels);
    for (std::int64_t k = 0; k < 4; ++k)
      if (const Place pixel = {at.image, at.y + k / 2, at.x + k % 2}; contains(out, pixel, 1))
        std::copy_n(copy + k * out.channels, out.channels, y + offset_of(out, pixel));
  }
}

/// y = x * filter; `filter` [3, 3, in, out].
void convolve_patches(const Patches& patches, const float* x, const float* filter, float* y) {
  ScratchScope scope;
  const std::int64_t in = patches.in.channels, out = patches.out.channels;
  const std::span<float> factors = scope.take<float>(kNumbers * in * out);
  MINIQAT_PICK(transform_filter)(filter, in, out, factors.data());
  const auto multiply = MINIQAT_PICK(multiply_packed);
  parallel_for(patches.groups(), patches.grain(), [&](std::int64_t begin, std::int64_t end) {
    ScratchScope own;
    const Transformed transformed = take_transformed(own, patches);
    const std::span<float> products = own.take<float>(kNumbers * patches.out_step());
    const std::span<float> copy = own.take<float>(4 * out);
    Group group = group_at(patches, begin * kGroup), next;
    for (std::int64_t index = begin; index < end; ++index, group = next) {
      next = group_at(patches, (index + 1) * kGroup);
      transform_group(patches, x, group, transformed);
      for (std::int64_t n = 0; n < kNumbers; ++n) {
        multiply(transformed.numbers.data() + n * patches.in_step(), group.count, in, factors.data() + n * in * out,
                 out, products.data() + n * patches.out_step());
        spread(n, group, [&](const Place& at) { prefetch<true>(patches.out, y, at); });
        spread(n, next, [&](const Place& at) { prefetch<false>(patches.in, x, at); });
      }
      write_group(patches, products.data(), group, copy.data(), y);
    }
  });
}

/// Adds what groups of patches give to the 16 packed sums [in, out].
void correlate_groups(const Patches& patches, const float* x, const float* d_y, std::int64_t begin, std::int64_t end,
                      float* sums) {
  ScratchScope scope;
  const std::int64_t in = patches.in.channels, out = patches.out.channels;
  const auto transform = MINIQAT_PICK(transform_gradients);
  const auto correlate = MINIQAT_PICK(correlate_packed);
  const Transformed transformed = take_transformed(scope, patches);
  const std::span<float> gradients = scope.take<float>(kNumbers * patches.out_step());
  const std::span<float> copy = scope.take<float>(4 * out);
  Group group = group_at(patches, begin * kGroup), next;
  for (std::int64_t index = begin; index < end; ++index, group = next) {
    next = group_at(patches, (index + 1) * kGroup);
    transform_group(patches, x, group, transformed);
    for (std::int64_t i = 0; i < group.count; ++i) {
      const Square square = square_at(patches.out, d_y, group.corners[i], 2, copy.data());
      transform(square.pixels, square.row, out, gradients.data() + i * out, patches.out_step());
    }
    for (std::int64_t n = 0; n < kNumbers; ++n) {
      correlate(transformed.numbers.data() + n * patches.in_step(), group.count, in,
                gradients.data() + n * patches.out_step(), out, sums + n * in * out);
      spread(n, next, [&](const Place& at) {
        prefetch<false>(patches.in, x, at);
        prefetch<false>(patches.out, d_y, at);
      });
    }
  }
}

Patches cut_patches(const DirectConvolution& c) {
  const auto& [rows, columns] = c.window;
  return {.batch = c.batch,
          .in = {rows.input, columns.input, c.in},
          .out = {rows.output, columns.output, c.out},
          .top = rows.pad_before,
          .left = columns.pad_before};
}

}  // namespace

void winograd_convolution(const DirectConvolution& c, const float* x, const float* filter, float* y) {
  convolve_patches(cut_patches(c), x, filter, y);
}

void winograd_backward_input(const DirectConvolution& c, const float* d_y, const float* filter, float* d_x) {
  ScratchScope scope;
  // A convolution of d_y by the filter turned around, [3, 3, out, in].
  const std::span<float> turned = scope.take<float>(9 * c.in * c.out);
  for (std::int64_t tap = 0; tap < 9; ++tap)
    for (std::int64_t i = 0; i < c.in; ++i)
      for (std::int64_t o = 0; o < c.out; ++o)
        turned[((8 - tap) * c.out + o) * c.in + i] = filter[(tap * c.in + i) * c.out + o];
  Patches patches = cut_patches(c);
  std::swap(patches.in, patches.out);
  patches.top = 2 - patches.top;
  patches.left = 2 - patches.left;
  convolve_patches(patches, d_y, turned.data(), d_x);
}

void winograd_backward_filter(const DirectConvolution& c, const float* x, const float* d_y, float* d_filter) {
  ScratchScope scope;
  const Patches patches = cut_patches(c);
  const std::int64_t groups = patches.groups(), size = kNumbers * c.in * c.out;
  const int parts = parallel_parts(groups, patches.grain());
  const std::span<float> sums = scope.filled<float>(parts * size, 0.0f);
  parallel_shares(groups, parts, [&](std::int64_t part, std::int64_t begin, std::int64_t end) {
    correlate_groups(patches, x, d_y, begin, end, sums.data() + part * size);
  });
  for (std::int64_t part = 1; part < parts; ++part)
    for (std::int64_t i = 0; i < size; ++i) sums[i] += sums[part * size + i];
  MINIQAT_PICK(transform_sums)(sums.data(), c.in, c.out, d_filter);
}

}  // namespace miniqat::layers
