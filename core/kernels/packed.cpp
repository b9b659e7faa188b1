#include "core/kernels/packed.h"

#include <algorithm>
#include <atomic>
#include <limits>

#include "core/kernels/instruction_set.h"
#include "core/kernels/scratch.h"
#include "core/threads/parallel.h"

namespace miniqat {
namespace {

#define MINIQAT_LOOPS "core/kernels/packed_loops.h"
#include "core/kernels/per_instruction_set.h"

/// Numbers of the grids side by side, repeated until they fill some vectors.
class GridRow {
 public:
  template <class Number>
  GridRow(ScratchScope& scope, std::span<const CodeGrid> grids, const Number& number)
      : values_(scope.take<float>(static_cast<std::size_t>(width_of(std::ssize(grids))))) {
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] = number(grids[i % grids.size()]);
  }
  static std::int64_t width_of(std::int64_t grids) {
    constexpr std::int64_t kLeast = 64;
    return (kLeast + grids - 1) / grids * grids;
  }
  const float* data() const { return values_.data(); }

 private:
  std::span<float> values_;
};

/// Calls body(first element, elements) for pieces that begin with the first grid, in parallel.
template <class Body>
void for_rows(std::int64_t elements, std::int64_t width, const Body& body) {
  const std::int64_t rows = (elements + width - 1) / width;
  parallel_for(rows, std::max<std::int64_t>(1, kPointwiseGrain / width), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) body(row * width, std::min(width, elements - row * width));
  });
}

}  // namespace

bool pack(const float* y, std::int64_t n, const CodeGrid& grid, std::uint8_t* codes) {
  static const auto loop = MINIQAT_PICK(pack_one);
  return loop(y, n, 1 / grid.scale, grid.zero_point + 0.5f, codes);
}

void pack(const PackedForm& form, const float* y, Tensor& bytes) {
  static const auto loop = MINIQAT_PICK(pack_row);
  const std::span<CodeGrid> grids = packed_grids(form, bytes);
  auto* codes = bytes.data<std::uint8_t>();
  std::atomic<bool> nan = false;
  const auto note = [&nan](bool found) {
    if (found) nan.store(true, std::memory_order_relaxed);
  };
  if (grids.size() == 1) {
    parallel_for(form.elements, kPointwiseGrain, [&](std::int64_t begin, std::int64_t end) {
      note(pack(y + begin, end - begin, grids[0], codes + begin));
    });
  } else {
    ScratchScope scope;
    const GridRow inverse(scope, grids, [](const CodeGrid& grid) { return 1 / grid.scale; });
    const GridRow rounding(scope, grids, [](const CodeGrid& grid) { return grid.zero_point + 0.5f; });
    for_rows(form.elements, GridRow::width_of(form.grids), [&](std::int64_t first, std::int64_t n) {
      note(loop(y + first, n, inverse.data(), rounding.data(), codes + first));
    });
  }
  if (nan)
    for (CodeGrid& grid : grids) grid.scale = std::numeric_limits<float>::quiet_NaN();
}

void unpack(const PackedForm& form, const Tensor& bytes, float* y) {
  static const auto one = MINIQAT_PICK(unpack_one);
  static const auto row = MINIQAT_PICK(unpack_row);
  const auto [codes, grids] = packed_tensor(form, bytes);
  if (grids.size() == 1) {
    parallel_for(form.elements, kPointwiseGrain,
                 [&, from = codes, grid = grids[0]](std::int64_t begin, std::int64_t end) {
                   one(from + begin, end - begin, grid.scale, grid.zero_point, y + begin);
                 });
    return;
  }
  ScratchScope scope;
  const GridRow scale(scope, grids, [](const CodeGrid& grid) { return grid.scale; });
  const GridRow zero_point(scope, grids, [](const CodeGrid& grid) { return grid.zero_point; });
  for_rows(form.elements, GridRow::width_of(form.grids), [&, from = codes](std::int64_t first, std::int64_t n) {
    row(from + first, n, scale.data(), zero_point.data(), y + first);
  });
}

}  // namespace miniqat
