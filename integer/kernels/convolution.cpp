#include "integer/kernels/convolution.h"

#include <algorithm>
#include <cstring>

#include "core/kernels/scratch.h"
#include "core/threads/parallel.h"

namespace miniqat::integer {
namespace {

/// Below this number of multiply-adds a second thread costs more than it saves.
constexpr std::int64_t kGrain = 500'000;
/// Images of at most this number of output pixels are taken whole.
constexpr std::int64_t kSmallImage = 64;
/// The size limit of a strip: copied strips stay in the first cache, others in the second.
constexpr std::int64_t kCopiedBytes = 24 * 1024;
constexpr std::int64_t kReadBytes = 128 * 1024;
constexpr std::int64_t kStripPixels = 768;

bool is_padded(const WindowAxis& axis) {
  return axis.pad_before > 0 || axis.source(axis.output - 1, axis.window - 1) >= axis.input;
}

/// Input positions that `outputs` neighbouring windows reach over.
std::int64_t reach(const WindowAxis& axis, std::int64_t outputs) {
  return (outputs - 1) * axis.stride + (axis.window - 1) * axis.dilation + 1;
}

bool is_pixelwise(const Window2d& window) {
  for (const WindowAxis& axis : {window.rows, window.columns})
    if (axis.window != 1 || axis.stride != 1 || axis.pad_before != 0 || axis.output != axis.input) return false;
  return true;
}

/// Bytes that a window sees one behind another in the image: its row of pixels, or one pixel where they lie apart.
std::int64_t segment_of(const Window2d& window, std::int64_t channels) {
  return (window.columns.dilation == 1 ? window.columns.window : 1) * channels;
}

/// Where a row of the border begins and ends in what windows see of a row: pixels before, of, and after the image.
struct Cut {
  std::int64_t before, inside, after;
};

Cut cut(const WindowAxis& axis, std::int64_t seen) {
  const std::int64_t before = std::min(axis.pad_before, seen);
  const std::int64_t inside = std::min(axis.input, seen - before);
  return {before, inside, seen - before - inside};
}

}  // namespace

std::int64_t Convolution::scratch_bytes(const Layer& layer) {
  const auto& [rows, columns] = layer.window;
  const bool whole = rows.output * columns.output <= kSmallImage;
  const std::int64_t channels = layer.filter[-2];
  return reach(rows, whole ? rows.output : 2) * reach(columns, columns.output) * channels + kCopiedBytes;
}

bool Convolution::fuses(const Layer& layer, const MaxPool& pool) {
  if (layer.kind != LayerKind::kConv2d || scratch_bytes(layer) > kMostScratch) return false;
  for (const WindowAxis& axis : {pool.window.rows, pool.window.columns})
    if (axis.window != 2 || axis.stride != 2 || axis.dilation != 1 || axis.pad_before != 0 ||
        2 * axis.output > axis.input)
      return false;
  return true;
}

Convolution::Convolution(const Layer& layer, const TensorInfo& input, const TensorInfo& output, const Clamp& clamp,
                         const MaxPool* pool, const ProductKernel& kernel)
    : kernel_(kernel),
      window_(layer.window),
      channels_(input.shape.channels()),
      pooled_(pool != nullptr),
      zero_point_(static_cast<std::uint8_t>(input.grid.zero_point)),
      weights_(layer, input.grid, output.grid, clamp, segment_of(window_, channels_), kernel.shape) {
  if (pool != nullptr) {
    // Pixels that no window of the pool sees need not be computed.
    window_.rows.output = 2 * pool->window.rows.output;
    window_.columns.output = 2 * pool->window.columns.output;
  } else if (is_pixelwise(window_)) {
    images_per_example_ = window_.rows.output * window_.columns.output;
    window_ = {};
  }
  lay_out_strips();
  lay_out_groups();
  lay_out_rows();
}

void Convolution::lay_out_strips() {
  const auto& [rows, columns] = window_;
  const std::int64_t pixels = rows.output * columns.output;
  whole_images_ = pixels <= kSmallImage;
  const std::int64_t unit_rows = whole_images_ ? rows.output : (pooled_ ? 2 : 1);
  units_per_image_ = rows.output / unit_rows;
  unit_pixels_ = unit_rows * columns.output;
  copies_ = is_padded(rows) || is_padded(columns) || segment_of(window_, channels_) % 4 != 0;
  row_bytes_ = (copies_ ? reach(columns, columns.output) : columns.input) * channels_;
  image_bytes_ = row_bytes_ * (copies_ ? reach(rows, rows.output) : rows.input);
  const std::int64_t unit_bytes = row_bytes_ * (whole_images_ ? reach(rows, rows.output) : unit_rows * rows.stride);
  const std::int64_t border = whole_images_ ? 0 : row_bytes_ * (reach(rows, unit_rows) - 1);
  const std::int64_t by_bytes = ((copies_ ? kCopiedBytes : kReadBytes) - border) / unit_bytes;
  strip_units_ = std::max<std::int64_t>(1, std::min(by_bytes, kStripPixels / unit_pixels_));
  if (!whole_images_) strip_units_ = std::min(strip_units_, units_per_image_);
}

void Convolution::lay_out_groups() {
  const auto& [rows, columns] = window_;
  const std::int64_t segment = segment_of(window_, channels_);
  const std::int64_t segments = columns.dilation == 1 ? 1 : columns.window;
  for (std::int64_t ky = 0; ky < rows.window; ++ky)
    for (std::int64_t kx = 0; kx < segments; ++kx)
      for (std::int64_t i = 0; i < segment; i += 4)
        groups_.push_back(
            static_cast<std::int32_t>(ky * rows.dilation * row_bytes_ + kx * columns.dilation * channels_ + i));
}

void Convolution::lay_out_rows() {
  const auto& [rows, columns] = window_;
  const std::int64_t rows_of_image = strip_rows(strip_units_);
  const std::int64_t step = pooled_ ? 2 : 1;
  for (std::int64_t image = 0; image < strip_images(strip_units_); ++image)
    for (std::int64_t y = 0; y < rows_of_image; y += step)
      for (std::int64_t x = 0; x < columns.output; x += step)
        for (std::int64_t dy = 0; dy < step; ++dy)
          for (std::int64_t dx = 0; dx < step; ++dx) {
            rows_.push_back(static_cast<std::int32_t>(image * image_bytes_ + (y + dy) * rows.stride * row_bytes_ +
                                                      (x + dx) * columns.stride * channels_));
            if (pooled_)
              sum_places_.push_back(
                  static_cast<std::int32_t>((image * rows_of_image + y + dy) * columns.output + x + dx));
          }
}

/// Output rows of each image in a strip.
std::int64_t Convolution::strip_rows(std::int64_t units) const {
  if (whole_images_) return window_.rows.output;
  return units * (pooled_ ? 2 : 1);
}

std::int64_t Convolution::strip_bytes() const {
  if (whole_images_) return strip_units_ * image_bytes_;
  return reach(window_.rows, strip_rows(strip_units_)) * row_bytes_;
}

void Convolution::copy_strip(const std::uint8_t* input, std::int64_t unit, std::int64_t units,
                             std::uint8_t* strip) const {
  const auto& [rows, columns] = window_;
  const std::int64_t first_row = whole_images_ ? 0 : unit % units_per_image_ * (pooled_ ? 2 : 1) * rows.stride;
  const std::int64_t count = reach(rows, strip_rows(units));
  const Cut across = cut(columns, reach(columns, columns.output));
  const std::int64_t input_row = columns.input * channels_;
  for (std::int64_t image = 0; image < strip_images(units); ++image) {
    const std::uint8_t* from = input + (unit / units_per_image_ + image) * rows.input * input_row;
    for (std::int64_t y = 0; y < count; ++y, strip += row_bytes_) {
      const std::int64_t source = first_row + y - rows.pad_before;
      if (!rows.contains(source)) {
        std::memset(strip, zero_point_, row_bytes_);
        continue;
      }
      std::memset(strip, zero_point_, across.before * channels_);
      std::memcpy(strip + across.before * channels_, from + source * input_row, across.inside * channels_);
      std::memset(strip + (across.before + across.inside) * channels_, zero_point_, across.after * channels_);
    }
  }
}

void Convolution::sum_strip(const std::uint8_t* source, std::int64_t units, std::int32_t* sums) const {
  const auto& [rows, columns] = window_;
  const std::int64_t output_rows = strip_rows(units);
  SumWindow window{.channels = channels_,
                   .image_rows = reach(rows, output_rows),
                   .image_columns = reach(columns, columns.output),
                   .row_bytes = row_bytes_,
                   .rows = rows.window,
                   .columns = columns.window,
                   .row_stride = rows.stride,
                   .column_stride = columns.stride,
                   .row_dilation = rows.dilation,
                   .column_dilation = columns.dilation,
                   .output_rows = output_rows,
                   .output_columns = columns.output};
  ScratchScope scope;
  std::int64_t images = strip_images(units);
  if (images_per_example_ > 1 || (rows.window == 1 && image_bytes_ == channels_)) {
    // Images of a pixel are pixels of one image.
    window.image_columns = window.output_columns = images;
    window.column_stride = 1;
    images = 1;
  }
  const std::span<std::int32_t> scratch =
      scope.take<std::int32_t>(window.image_rows * (window.image_columns + window.output_columns));
  const std::int64_t pixels = window.output_rows * window.output_columns;
  const std::span<std::int32_t> plain = scope.take<std::int32_t>(pooled_ ? images * pixels : 0);
  std::int32_t* to = pooled_ ? plain.data() : sums;
  for (std::int64_t image = 0; image < images; ++image)
    kernel_.sum_windows(window, source + image * image_bytes_, scratch.data(), to + image * pixels);
  if (!pooled_) return;
  for (std::int64_t i = 0; i < images * pixels; ++i) sums[i] = plain[sum_places_[i]];
}

void Convolution::run_units(const std::uint8_t* input, std::uint8_t* output, std::int64_t begin, std::int64_t end,
                            std::int64_t first_panel, std::int64_t last_panel) const {
  constexpr std::int64_t kBehind = 4;
  const auto& [rows, columns] = window_;
  ScratchScope scope;
  const std::span<std::uint8_t> strip = scope.take<std::uint8_t>(copies_ ? strip_bytes() + kBehind : 0);
  const std::span<std::int32_t> sums = scope.take<std::int32_t>(weights_.corrected() ? strip_units_ * unit_pixels_ : 0);
  const PackedWeights::View weights = weights_.view();
  ProductRows product{.rows = rows_.data(), .groups = groups_.data(), .sums = sums.data(), .pooled = pooled_};
  for (std::int64_t unit = begin; unit < end;) {
    const std::int64_t left_in_image = whole_images_ ? end - unit : units_per_image_ - unit % units_per_image_;
    const std::int64_t units = std::min({strip_units_, end - unit, left_in_image});
    if (copies_) {
      copy_strip(input, unit, units, strip.data());
      product.source = strip.data();
    } else {
      const std::int64_t row = unit % units_per_image_ * (pooled_ ? 2 : 1) * rows.stride;
      product.source = input + unit / units_per_image_ * image_bytes_ + row * row_bytes_;
    }
    if (weights_.corrected()) sum_strip(product.source, units, sums.data());
    product.count = units * unit_pixels_;
    product.output = output + unit * unit_pixels_ / (pooled_ ? 4 : 1) * weights_.columns();
    kernel_.multiply(weights, product, first_panel, last_panel);
    unit += units;
  }
}

void Convolution::run(std::int64_t n, StepInputs inputs, std::uint8_t* output) const {
  const std::int64_t units = n * images_per_example_ * units_per_image_;
  const std::int64_t panels = weights_.panels();
  const std::int64_t rows = units * unit_pixels_;
  const std::int64_t group_work = 4 * weights_.groups();
  // The longer side of the output is cut: a thread reads all of the other factor.
  if (panels > 1 && (rows < weights_.columns() || units < thread_count())) {
    const std::int64_t panel_work = rows * group_work * kernel_.shape.columns;
    parallel_for(panels, kGrain / panel_work + 1,
                 [&](std::int64_t begin, std::int64_t end) { run_units(inputs[0], output, 0, units, begin, end); });
  } else {
    const std::int64_t unit_work = unit_pixels_ * group_work * weights_.columns();
    parallel_for(units, kGrain / unit_work + 1,
                 [&](std::int64_t begin, std::int64_t end) { run_units(inputs[0], output, begin, end, 0, panels); });
  }
}

}  // namespace miniqat::integer
