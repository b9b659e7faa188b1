#include "layers/kernels/depthwise_kernels.h"

#include <algorithm>
#include <span>
#include <type_traits>

#include "core/kernels/instruction_set.h"
#include "core/kernels/scratch.h"
#include "core/threads/parallel.h"
#include "layers/kernels/column_statistics.h"

namespace miniqat::layers {
namespace {

/// Along one axis: tap `window` sees position `source`.
struct AxisTap {
  std::int64_t source;
  std::int64_t window;
};

/// Positions first, first + stride, ... that see through the same taps; from each to the next the sources move on by
/// `step`. `taps` are those of the first.
struct Run {
  std::int64_t first;
  std::int64_t count;
  std::int64_t stride;
  std::int64_t step;
  std::span<const AxisTap> taps;
  /// Whether there are 1 to 3 taps, whose sources are neighbours in ascending order, and from each to the next `window`
  /// changes by tap_step.
  bool neighbours = false;
  std::int64_t tap_step = 0;
};

/// Which taps see what from each of the positions of an axis.
struct Axis {
  std::span<std::span<const AxisTap>> taps;
  std::span<const Run> runs;
  /// How many positions there are to be seen.
  std::int64_t sources;
};

/// Sums over taps, either way: of x for the pixels of y (the gradient of the filter), of d_y for those of x.
struct Geometry {
  Axis rows;
  Axis columns;
  std::int64_t batch;
  std::int64_t channels;
  std::int64_t window_columns;
  /// Floats in a row and in an image of what is read through the taps, and in a row of the other one.
  std::int64_t source_row;
  std::int64_t source_image;
  std::int64_t target_row;

  /// The rows that are not read through the taps, in all images.
  std::int64_t all_rows() const { return batch * static_cast<std::int64_t>(rows.taps.size()); }
};

#define MINIQAT_LOOPS "layers/kernels/depthwise_loops.h"
#include "core/kernels/per_instruction_set.h"

/// Work for which a further thread is worth waking, in products of a filter's element.
constexpr std::int64_t kProductGrain = 4 * kPointwiseGrain;

void look_at_taps(Run& run) {
  const std::span<const AxisTap> taps = run.taps;
  run.neighbours = !taps.empty() && taps.size() <= 3;
  run.tap_step = taps.size() > 1 ? taps[1].window - taps[0].window : 0;
  for (std::size_t k = 1; k < taps.size(); ++k)
    if (taps[k].source != taps[k - 1].source + 1 || taps[k].window != taps[k - 1].window + run.tap_step)
      run.neighbours = false;
}

/// Fills in the runs: positions p, p + period, ... are candidates for one run.
std::span<const Run> find_runs(ScratchScope& scope, std::span<std::span<const AxisTap>> taps, std::int64_t period,
                               std::int64_t step) {
  const auto size = static_cast<std::int64_t>(taps.size());
  const std::span<Run> runs = scope.take<Run>(taps.size());
  std::size_t used = 0;
  const auto continues = [&](const Run& run, std::int64_t position) {
    const auto follows = [&](const AxisTap& first, const AxisTap& now) {
      return now.window == first.window && now.source == first.source + run.count * step;
    };
    return std::ranges::equal(run.taps, taps[position], follows);
  };
  for (std::int64_t phase = 0; phase < std::min(period, size); ++phase) {
    Run run = {.first = phase, .count = 1, .stride = period, .step = step, .taps = taps[phase]};
    for (std::int64_t position = phase + period; position < size; position += period) {
      if (continues(run, position)) {
        ++run.count;
        continue;
      }
      runs[used++] = run;
      run = {.first = position, .count = 1, .stride = period, .step = step, .taps = taps[position]};
    }
    runs[used++] = run;
  }
  for (Run& run : runs.first(used)) look_at_taps(run);
  return runs.first(used);
}

/// For every output position the input positions that it sees.
Axis outputs_to_inputs(ScratchScope& scope, const WindowAxis& axis) {
  const std::span<AxisTap> all = scope.take<AxisTap>(axis.output * axis.window);
  const std::span<std::span<const AxisTap>> taps = scope.take<std::span<const AxisTap>>(axis.output);
  std::size_t used = 0;
  for (std::int64_t o = 0; o < axis.output; ++o) {
    const std::size_t first = used;
    for (std::int64_t k = 0; k < axis.window; ++k)
      if (axis.contains(axis.source(o, k))) all[used++] = {axis.source(o, k), k};
    taps[o] = all.subspan(first, used - first);
  }
  return {taps, find_runs(scope, taps, 1, axis.stride), axis.input};
}

/// For every input position the output positions that see it.
Axis inputs_to_outputs(ScratchScope& scope, const WindowAxis& axis) {
  const std::span<AxisTap> all = scope.take<AxisTap>(axis.input * axis.window);
  const std::span<std::span<const AxisTap>> taps = scope.take<std::span<const AxisTap>>(axis.input);
  std::size_t used = 0;
  for (std::int64_t i = 0; i < axis.input; ++i) {
    const std::size_t first = used;
    for (std::int64_t k = axis.window - 1; k >= 0; --k) {
      const std::int64_t scaled = i + axis.pad_before - k * axis.dilation;
      if (scaled >= 0 && scaled % axis.stride == 0 && scaled / axis.stride < axis.output)
        all[used++] = {scaled / axis.stride, k};
    }
    taps[i] = all.subspan(first, used - first);
  }
  return {taps, find_runs(scope, taps, axis.stride, 1), axis.output};
}

std::int64_t row_grain(const Geometry& g, const Window2d& window) {
  const std::int64_t products = g.target_row * window.rows.window * window.columns.window;
  return std::max<std::int64_t>(1, kProductGrain / products);
}

Geometry geometry_of(const Axis& rows, const Axis& columns, const Window2d& window, std::int64_t batch,
                     std::int64_t channels) {
  return {.rows = rows,
          .columns = columns,
          .batch = batch,
          .channels = channels,
          .window_columns = window.columns.window,
          .source_row = columns.sources * channels,
          .source_image = rows.sources * columns.sources * channels,
          .target_row = std::ssize(columns.taps) * channels};
}

}  // namespace

void depthwise_backward_input(const Window2d& window, std::int64_t batch, std::int64_t channels, const float* d_y,
                              const float* filter, float* d_x) {
  ScratchScope scope;
  const Geometry geometry = geometry_of(inputs_to_outputs(scope, window.rows), inputs_to_outputs(scope, window.columns),
                                        window, batch, channels);
  const auto rows = MINIQAT_PICK(gather_rows);
  parallel_for(geometry.all_rows(), row_grain(geometry, window),
               [&](std::int64_t begin, std::int64_t end) { rows(geometry, d_y, filter, d_x, begin, end); });
}

void depthwise_backward_filter(const Window2d& window, std::int64_t batch, std::int64_t channels, const float* x,
                               const float* d_y, float* d_filter) {
  ScratchScope scope;
  const Geometry geometry = geometry_of(outputs_to_inputs(scope, window.rows), outputs_to_inputs(scope, window.columns),
                                        window, batch, channels);
  const std::int64_t size = window.rows.window * window.columns.window * channels;
  const std::int64_t rows_in_all = geometry.all_rows();
  const int parts = parallel_parts(rows_in_all, row_grain(geometry, window));
  const ColumnParts columns = {.channels = size, .width = size, .parts = parts};
  const std::span<float> sums = scope.filled<float>(columns.size(), 0.0f);
  const auto rows = MINIQAT_PICK(correlate_rows);
  parallel_shares(rows_in_all, parts, [&](std::int64_t part, std::int64_t begin, std::int64_t end) {
    rows(geometry, x, d_y, sums.data() + part * columns.stride(), begin, end);
  });
  std::copy_n(sums.data(), size, d_filter);
  for (std::int64_t part = 1; part < parts; ++part)
    for (std::int64_t i = 0; i < size; ++i) d_filter[i] += sums[part * columns.stride() + i];
}

}  // namespace miniqat::layers
