#include "integer/ops/pool.h"

#include <cstring>

#include "core/kernels/instruction_set.h"
#include "core/kernels/scratch.h"
#include "core/threads/parallel.h"
#include "integer/kernels/requantization.h"
#include "integer/ops/operation_check.h"

namespace miniqat::integer {
namespace {

/// No window lies on padding alone: the first tap that is not before the image lies on it.
void require_pixels(const OperationCheck& rules, const Window2d& window) {
  for (const WindowAxis& axis : {window.rows, window.columns})
    for (std::int64_t o = 0; o < axis.output; ++o) {
      const std::int64_t before = std::max<std::int64_t>(-axis.source(o, 0), 0);
      const std::int64_t tap = (before + axis.dilation - 1) / axis.dilation;
      rules.require(tap < axis.window && axis.contains(axis.source(o, tap)), "has a window that lies on padding alone");
    }
}

}  // namespace

void AveragePool::check(const OperationCheck& rules) const {
  rules.require_inputs(1);
  rules.require_window(window);
  const auto& [rows, columns] = window;
  const Shape image = rules.shape_of({rows.output, columns.output, rules.input().shape[2]});
  const Shape& made = rules.output().shape;
  rules.require(made == image || (made == Shape{image[2]} && rows.output * columns.output == 1), "makes ", image,
                ", its output is ", made);
  rules.require(static_cast<std::int64_t>(multipliers.size()) == rows.window * columns.window,
                "takes one multiplier for each number of pixels in a window");
  for (const Multiplier& multiplier : multipliers) rules.require_multiplier(multiplier);
  rules.require(rows.window * columns.window <= INT32_MAX / rules.farthest(),
                "may have a sum that does not fit 32 bits");
  require_pixels(rules, window);
}

void MaxPool::check(const OperationCheck& rules) const {
  rules.require_inputs(1);
  rules.require_window(window);
  rules.require_output_shape({window.rows.output, window.columns.output, rules.input().shape[2]});
  rules.require_one_grid();
  require_pixels(rules, window);
}

bool AveragePool::is_global() const {
  const auto is_whole = [](const WindowAxis& axis) {
    // A single tap has no distance to the next.
    const bool dense = axis.dilation == 1 || axis.window == 1;
    return axis.output == 1 && axis.pad_before == 0 && axis.window == axis.input && dense;
  };
  return is_whole(window.rows) && is_whole(window.columns);
}

namespace {

#define MINIQAT_LOOPS "integer/ops/pool_loops.h"
#include "core/kernels/per_instruction_set.h"

struct Range {
  std::int64_t begin, end;
};

/// The taps through which output position o sees the image and not its padding.
Range taps_of(const WindowAxis& axis, std::int64_t o) {
  const std::int64_t first = axis.source(o, 0);
  const std::int64_t begin = first >= 0 ? 0 : (-first + axis.dilation - 1) / axis.dilation;
  const std::int64_t end = first >= axis.input ? 0 : (axis.input - first + axis.dilation - 1) / axis.dilation;
  return {begin, std::min(axis.window, end)};
}

/// Calls pixel(output pixel) for every output pixel of rows [begin, end) of a batch, and after it tap(input pixel) for
/// every pixel in its window, then done(output pixel, number of taps).
template <class Start, class Visit, class Done>
void for_windows(const Window2d& window, std::int64_t begin, std::int64_t end, const Start& start, const Visit& visit,
                 const Done& done) {
  const auto& [rows, columns] = window;
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t image = row / rows.output, y = row % rows.output;
    const Range down = taps_of(rows, y);
    for (std::int64_t x = 0; x < columns.output; ++x) {
      const Range across = taps_of(columns, x);
      const std::int64_t pixel = row * columns.output + x;
      start(pixel);
      for (std::int64_t ky = down.begin; ky < down.end; ++ky)
        for (std::int64_t kx = across.begin; kx < across.end; ++kx)
          visit((image * rows.input + rows.source(y, ky)) * columns.input + columns.source(x, kx));
      done(pixel, (down.end - down.begin) * (across.end - across.begin));
    }
  }
}

/// Calls body(begin, end) over the rows of pixels of n examples, over threads.
template <class Body>
void for_rows(std::int64_t n, const Window2d& window, std::int64_t channels, const Body& body) {
  const std::int64_t taps = window.rows.window * window.columns.window;
  const std::int64_t row_work = window.columns.output * channels * taps;
  parallel_for(n * window.rows.output, 8 * kPointwiseGrain / row_work + 1, body);
}

}  // namespace

Step AveragePool::make_step(const Model& model, const Operation& operation) const {
  // For each number of pixels from 1 on.
  std::vector<RequantizationFactors> factors;
  for (const Multiplier& multiplier : multipliers) factors.push_back(requantization_factors(multiplier));
  return [window = window, channels = model.input_of(operation).shape[2],
          zero_point = model.input_of(operation).grid.zero_point,
          output_zero_point = model.output_of(operation).grid.zero_point, clamp = operation.clamp,
          factors = std::move(factors)](std::int64_t n, StepInputs inputs, std::uint8_t* output) {
    const auto add = MINIQAT_PICK(add_pixel);
    const auto finish = MINIQAT_PICK(requantize_sums);
    for_rows(n, window, channels, [&](std::int64_t begin, std::int64_t end) {
      ScratchScope scope;
      const std::span<std::int32_t> sums = scope.take<std::int32_t>(channels);
      for_windows(
          window, begin, end, [&](std::int64_t) { std::ranges::fill(sums, 0); },
          [&](std::int64_t pixel) { add(inputs[0] + pixel * channels, channels, sums.data()); },
          [&](std::int64_t pixel, std::int64_t count) {
            // The zero point, once for each pixel.
            const auto zeros = static_cast<std::int32_t>(count * zero_point);
            for (std::int32_t& sum : sums) sum -= zeros;
            finish(sums.data(), channels, factors[count - 1], output_zero_point, clamp, output + pixel * channels);
          });
    });
  };
}

Step MaxPool::make_step(const Model& model, const Operation& operation) const {
  return [window = window, channels = model.input_of(operation).shape[2]](std::int64_t n, StepInputs inputs,
                                                                          std::uint8_t* output) {
    const auto take = MINIQAT_PICK(take_larger);
    for_rows(n, window, channels, [&](std::int64_t begin, std::int64_t end) {
      std::uint8_t* y = nullptr;
      for_windows(
          window, begin, end,
          [&](std::int64_t pixel) {
            y = output + pixel * channels;
            std::memset(y, 0, channels);
          },
          [&](std::int64_t pixel) { take(inputs[0] + pixel * channels, channels, y); },
          [](std::int64_t, std::int64_t) {});
    });
  };
}

}  // namespace miniqat::integer
