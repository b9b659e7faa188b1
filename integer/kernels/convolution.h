#pragma once

#include <vector>

#include "integer/kernels/product.h"

namespace miniqat::integer {

/// A convolution or fully connected layer as a matrix product whose left matrix is never made: the product reads the
/// windows where they lie in the images. Images with padding, or whose rows of a window are no multiples of four bytes,
/// are copied first, a strip of a few output rows (or a few small images) at a time. From [h, w, in], or [in] into a
/// fully connected layer, to [oh, ow, out] or [out].
class Convolution {
 public:
  /// For a layer that is no depthwise convolution and whose scratch_bytes() are within kMostScratch. `input` is the
  /// layer's, `output` has the grid that its integers go to. `pool`, when not null, is applied to the output as well,
  /// which then is the pool's; it must be one that fuses() with the layer. `kernel` must
  /// stay; all else is copied.
  Convolution(const Layer& layer, const TensorInfo& input, const TensorInfo& output, const Clamp& clamp,
              const MaxPool* pool, const ProductKernel& kernel = product_kernels().front());

  void run(std::int64_t n, StepInputs inputs, std::uint8_t* output) const;

  /// The most bytes that the pixels of a strip take, once for each thread that runs. (A pool that makes a small image
  /// of a larger one may make it a few times as many.)
  static std::int64_t scratch_bytes(const Layer& layer);
  /// Whether the layer can write a pool's output, which reads its own, right away: a Conv2D within kMostScratch, and a
  /// pool whose windows are 2x2, next to each other and inside the layer's output.
  static bool fuses(const Layer& layer, const MaxPool& pool);

 private:
  void lay_out_strips();
  void lay_out_groups();
  void lay_out_rows();
  void run_units(const std::uint8_t* input, std::uint8_t* output, std::int64_t begin, std::int64_t end,
                 std::int64_t first_panel, std::int64_t last_panel) const;
  void copy_strip(const std::uint8_t* input, std::int64_t unit, std::int64_t units, std::uint8_t* strip) const;
  void sum_strip(const std::uint8_t* source, std::int64_t units, std::int32_t* sums) const;
  std::int64_t strip_rows(std::int64_t units) const;
  std::int64_t strip_bytes() const;
  std::int64_t strip_images(std::int64_t units) const { return whole_images_ ? units : 1; }

  const ProductKernel& kernel_;
  Window2d window_;
  std::int64_t channels_;
  bool pooled_;
  std::uint8_t zero_point_;
  /// Examples of one pixel that one example of the model is seen as: 1x1 convolutions take pixels for images.
  std::int64_t images_per_example_ = 1;

  /// Work is counted in units: rows of the output (or of the pooled output), or whole images where these are small.
  bool whole_images_ = false;
  std::int64_t units_per_image_ = 1;
  /// Rows of the product that a unit has.
  std::int64_t unit_pixels_ = 1;
  /// At most so many at a time.
  std::int64_t strip_units_ = 1;
  bool copies_ = false;
  /// Bytes from row to row and from image to image where the product reads.
  std::int64_t row_bytes_ = 0, image_bytes_ = 0;

  PackedWeights weights_;
  std::vector<std::int32_t> groups_;
  std::vector<std::int32_t> rows_;
  /// The places of the pooled rows' sums in the image's order.
  std::vector<std::int32_t> sum_places_;
};

}  // namespace miniqat::integer
