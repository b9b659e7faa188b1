#include "quantize/convert/integer_window.h"

#include <algorithm>
#include <array>

#include "core/text/error.h"
#include "layers/conv2d.h"

namespace miniqat::quantize {
namespace {

/// [before, after] of a spatial axis; left out for none.
std::array<std::int64_t, 2> border(const std::vector<std::array<std::int64_t, 2>>& borders, std::size_t axis) {
  return borders.empty() ? std::array<std::int64_t, 2>{0, 0} : borders[axis];
}

/// Pixel v of block offset b is pixel v * block + b - top of the image, so a tap further in the block is `block`
/// pixels further in the image.
WindowAxis dilated_axis(const WindowAxis& inner, std::int64_t extent, std::int64_t block, std::int64_t top,
                        const std::array<std::int64_t, 2>& crop) {
  if (inner.stride != 1) fail("a convolution with strides between SpaceToBatchND and BatchToSpaceND is not dilated");
  WindowAxis axis = {.input = extent, .window = inner.window, .stride = 1, .dilation = inner.dilation * block};
  axis.output = inner.output * block - crop[0] - crop[1];
  axis.pad_before = inner.pad_before * block + top - crop[0];
  if (axis.pad_before < 0) fail("BatchToSpaceND crops ", crop[0], " pixels, more than was padded before");
  axis.pad_after = std::max<std::int64_t>(axis.source(axis.output - 1, axis.window - 1) + 1 - extent, 0);
  return axis;
}

}  // namespace

Window2d convolution_window(const Node& layer) {
  const Shape& images = layer.input(0).shape();
  const Shape& filter = layer.input(1).shape();
  if (const auto* conv = layer.as<layers::Conv2d>()) return layers::window_of(images, filter, *conv);
  return layers::window_of(images, filter, *layer.as<layers::DepthwiseConv2d>());
}

Window2d dilated_window(const Atrous& atrous, const layers::BatchToSpaceAttributes& to_space) {
  const std::vector<std::int64_t>& blocks = atrous.to_batch.block_shape;
  if (blocks != to_space.block_shape) fail("BatchToSpaceND does not undo the SpaceToBatchND before it");
  const auto axis = [&](std::size_t i, const WindowAxis& inner) {
    return dilated_axis(inner, atrous.images[static_cast<int>(i) + 1], blocks[i],
                        border(atrous.to_batch.paddings, i)[0], border(to_space.crops, i));
  };
  return {.rows = axis(0, atrous.window.rows), .columns = axis(1, atrous.window.columns)};
}

}  // namespace miniqat::quantize
