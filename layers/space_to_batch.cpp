#include "layers/space_to_batch.h"

#include <algorithm>

#include "core/graph/op.h"
#include "layers/kernels/pointwise.h"
#include "layers/reference/space_to_batch.h"

namespace miniqat::layers {
namespace {

using Pairs = std::vector<std::array<std::int64_t, 2>>;

/// The rules of both ops for their attributes; `role` is "paddings" or "crops".
void check_blocks(const Shape& x, const std::vector<std::int64_t>& block_shape, const Pairs& around,
                  std::string_view role) {
  if (block_shape.empty() || static_cast<int>(block_shape.size()) >= x.rank())
    fail("block_shape needs an entry for each spatial axis, from axis 1 on, has ", block_shape.size(), "; x ", x);
  if (!around.empty() && around.size() != block_shape.size())
    fail(role, " needs one [before, after] for each of the ", block_shape.size(), " entries of block_shape, has ",
         around.size(), "; x ", x);
  for (const std::int64_t block : block_shape)
    if (block < 1 || block > Shape::kMaxElements)
      fail("block_shape entry ", block, " is outside [1, ", Shape::kMaxElements, "]; x ", x);
  for (std::size_t k = 0; k < around.size(); ++k)
    for (const std::int64_t width : around[k])
      if (width < 0 || width > Shape::kMaxElements)
        fail(role, " of axis ", k + 1, " hold ", width, ", which is outside [0, ", Shape::kMaxElements, "]; x ", x);
}

std::int64_t total(const Pairs& around, std::size_t k) { return around.empty() ? 0 : around[k][0] + around[k][1]; }

/// The image in space and the blocks in the batch, both seen as rows of the elements behind the spatial axes.
struct Layout {
  Layout(const Shape& image, const Shape& blocks, const std::vector<std::int64_t>& block_shape, const Pairs& around)
      : images(image[0]), rows(blocks[0]), length(1) {
    const int spatial_axes = static_cast<int>(block_shape.size());
    for (int k = 0; k < spatial_axes; ++k) {
      axes.push_back({.image = image[k + 1],
                      .block = blocks[k + 1],
                      .stride = block_shape[k],
                      .before = around.empty() ? 0 : around[k][0]});
      rows *= blocks[k + 1];
    }
    for (int axis = spatial_axes + 1; axis < image.rank(); ++axis) length *= image[axis];
  }

  /// The row of the image that a row of the blocks holds; -1 for padding and for what is cropped.
  std::int64_t row_in_image(std::int64_t row) const {
    std::int64_t block = row;
    for (const Axis& axis : axes) block /= axis.block;
    std::int64_t index = 0;
    std::int64_t stride = 1;
    std::int64_t offsets = block / images;
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      const std::int64_t at = row % axis->block * axis->stride + offsets % axis->stride - axis->before;
      if (at < 0 || at >= axis->image) return -1;
      index += at * stride;
      stride *= axis->image;
      row /= axis->block;
      offsets /= axis->stride;
    }
    return index + block % images * stride;
  }

  /// Calls body(i, j, length) for every row of the blocks: it starts at element i of the blocks and at element j of the
  /// image, or beside it where j < 0. Over threads.
  template <class Body>
  void for_each_row(const Body& body) const {
    if (length == 0) return;
    parallel_for(rows, row_grain(length), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) body(row * length, row_in_image(row) * length, length);
    });
  }

  struct Axis {
    std::int64_t image;
    std::int64_t block;
    std::int64_t stride;
    std::int64_t before;
  };
  std::int64_t images;
  std::int64_t rows;
  std::int64_t length;
  std::vector<Axis> axes;
};

/// To the blocks or to the image, whichever `to` is.
void move(bool to_blocks, const Tensor& from, Tensor& to, const std::vector<std::int64_t>& block_shape,
          const Pairs& around) {
  const Shape& image = (to_blocks ? from : to).shape();
  const Shape& blocks = (to_blocks ? to : from).shape();
  const float* source = from.data<float>();
  float* target = to.data<float>();
  Layout(image, blocks, block_shape, around).for_each_row([=](std::int64_t i, std::int64_t j, std::int64_t length) {
    if (j >= 0)
      std::copy_n(source + (to_blocks ? j : i), length, target + (to_blocks ? i : j));
    else if (to_blocks)
      std::fill_n(target + i, length, 0.0f);
  });
}

void reference_move(bool to_blocks, const Tensor& from, Tensor& to, const std::vector<std::int64_t>& block_shape,
                    const Pairs& around) {
  with_float_type(from, [&]<class T>(T) {
    if (to_blocks)
      reference::space_to_batch<T>(from.shape(), to.shape(), block_shape, around, from.data<T>(), to.data<T>());
    else
      reference::batch_to_space<T>(to.shape(), from.shape(), block_shape, around, from.data<T>(), to.data<T>());
  });
}

const Pairs& around_of(const SpaceToBatchAttributes& attributes) { return attributes.paddings; }
const Pairs& around_of(const BatchToSpaceAttributes& attributes) { return attributes.crops; }

/// Either op: its gradient goes the other's way.
template <class Kind, bool kToBlocks>
class BlockOp : public OpOf<Kind> {
 public:
  using OpOf<Kind>::OpOf;

  void forward(const ForwardContext& context) const final {
    move(kToBlocks, context.input(0), context.output(0), attributes_.block_shape, around_of(attributes_));
  }

  void backward(const BackwardContext& context) const final {
    if (Tensor* d_x = context.d_inputs[0])
      move(!kToBlocks, *context.d_outputs[0], *d_x, attributes_.block_shape, around_of(attributes_));
  }

  void reference_forward(const ForwardContext& context) const final {
    reference_move(kToBlocks, context.input(0), context.output(0), attributes_.block_shape, around_of(attributes_));
  }

  void reference_backward(const BackwardContext& context) const final {
    if (Tensor* d_x = context.d_inputs[0])
      reference_move(!kToBlocks, *context.d_outputs[0], *d_x, attributes_.block_shape, around_of(attributes_));
  }

 protected:
  using OpOf<Kind>::attributes_;
};

class SpaceToBatchNdOp final : public BlockOp<SpaceToBatchNd, true> {
 public:
  using BlockOp::BlockOp;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override {
    require_inputs(inputs, 1);
    require_float(inputs);
    const auto& [block_shape, paddings] = attributes_;
    const Shape& x = inputs[0].shape;
    check_blocks(x, block_shape, paddings, "paddings");
    std::vector<std::int64_t> extents = x.to_vector();
    for (std::size_t k = 0; k < block_shape.size(); ++k) {
      const std::int64_t padded = extents[k + 1] + total(paddings, k);
      if (padded % block_shape[k] != 0)
        fail("block_shape entry ", block_shape[k], " does not divide axis ", k + 1, ", padded to ", padded, "; x ", x);
      extents[k + 1] = padded / block_shape[k];
      extents[0] *= block_shape[k];
      if (extents[0] > Shape::kMaxElements)
        fail("the blocks make a batch of more than ", Shape::kMaxElements, "; x ", x);
    }
    return {{Shape(extents), DType::kFloat32}};
  }
};

class BatchToSpaceNdOp final : public BlockOp<BatchToSpaceNd, false> {
 public:
  using BlockOp::BlockOp;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override {
    require_inputs(inputs, 1);
    require_float(inputs);
    const auto& [block_shape, crops] = attributes_;
    const Shape& x = inputs[0].shape;
    check_blocks(x, block_shape, crops, "crops");
    std::vector<std::int64_t> extents = x.to_vector();
    for (std::size_t k = 0; k < block_shape.size(); ++k) {
      if (extents[0] % block_shape[k] != 0)
        fail("the entries of block_shape do not divide the batch ", x[0], "; x ", x);
      extents[0] /= block_shape[k];
      const std::int64_t uncropped = extents[k + 1] * block_shape[k];
      if (total(crops, k) > uncropped)
        fail("crops ", crops[k][0], " and ", crops[k][1], " exceed axis ", k + 1, " of the result, ", uncropped, "; x ",
             x);
      extents[k + 1] = uncropped - total(crops, k);
    }
    return {{Shape(extents), DType::kFloat32}};
  }
};

}  // namespace

std::shared_ptr<Op> SpaceToBatchNd::make(const Attributes& attributes) {
  return std::make_shared<SpaceToBatchNdOp>(attributes);
}

std::shared_ptr<Op> BatchToSpaceNd::make(const Attributes& attributes) {
  return std::make_shared<BatchToSpaceNdOp>(attributes);
}

}  // namespace miniqat::layers
