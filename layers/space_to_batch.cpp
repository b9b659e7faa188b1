#include "layers/space_to_batch.h"

#include <algorithm>

#include "core/graph/node_check.h"
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

void deal_out(const Tensor& image, Tensor& blocks, const std::vector<std::int64_t>& block_shape, const Pairs& around) {
  const float* from = image.data<float>();
  float* to = blocks.data<float>();
  Layout(image.shape(), blocks.shape(), block_shape, around)
      .for_each_row([=](std::int64_t i, std::int64_t j, std::int64_t length) {
        if (j < 0)
          std::fill(to + i, to + i + length, 0.0f);
        else
          std::copy(from + j, from + j + length, to + i);
      });
}

void collect(const Tensor& blocks, Tensor& image, const std::vector<std::int64_t>& block_shape, const Pairs& around) {
  const float* from = blocks.data<float>();
  float* to = image.data<float>();
  Layout(image.shape(), blocks.shape(), block_shape, around)
      .for_each_row([=](std::int64_t i, std::int64_t j, std::int64_t length) {
        if (j >= 0) std::copy(from + i, from + i + length, to + j);
      });
}

void reference_deal_out(const Tensor& image, Tensor& blocks, const std::vector<std::int64_t>& block_shape,
                        const Pairs& around) {
  with_float_type(image, [&]<class T>(T) {
    reference::space_to_batch<T>(image.shape(), blocks.shape(), block_shape, around, image.data<T>(), blocks.data<T>());
  });
}

void reference_collect(const Tensor& blocks, Tensor& image, const std::vector<std::int64_t>& block_shape,
                       const Pairs& around) {
  with_float_type(image, [&]<class T>(T) {
    reference::batch_to_space<T>(image.shape(), blocks.shape(), block_shape, around, blocks.data<T>(), image.data<T>());
  });
}

class SpaceToBatchNdOp final : public OpOf<SpaceToBatchNd> {
 public:
  using OpOf::OpOf;

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

  void forward(const ForwardContext& context) const override {
    deal_out(context.input(0), context.output(0), attributes_.block_shape, attributes_.paddings);
  }

  void backward(const BackwardContext& context) const override {
    if (Tensor* d_x = context.d_inputs[0])
      collect(*context.d_outputs[0], *d_x, attributes_.block_shape, attributes_.paddings);
  }

  void reference_forward(const ForwardContext& context) const override {
    reference_deal_out(context.input(0), context.output(0), attributes_.block_shape, attributes_.paddings);
  }

  void reference_backward(const BackwardContext& context) const override {
    if (Tensor* d_x = context.d_inputs[0])
      reference_collect(*context.d_outputs[0], *d_x, attributes_.block_shape, attributes_.paddings);
  }
};

class BatchToSpaceNdOp final : public OpOf<BatchToSpaceNd> {
 public:
  using OpOf::OpOf;

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

  void forward(const ForwardContext& context) const override {
    collect(context.input(0), context.output(0), attributes_.block_shape, attributes_.crops);
  }

  void backward(const BackwardContext& context) const override {
    if (Tensor* d_x = context.d_inputs[0])
      deal_out(*context.d_outputs[0], *d_x, attributes_.block_shape, attributes_.crops);
  }

  void reference_forward(const ForwardContext& context) const override {
    reference_collect(context.input(0), context.output(0), attributes_.block_shape, attributes_.crops);
  }

  void reference_backward(const BackwardContext& context) const override {
    if (Tensor* d_x = context.d_inputs[0])
      reference_deal_out(*context.d_outputs[0], *d_x, attributes_.block_shape, attributes_.crops);
  }
};

}  // namespace

void SpaceToBatchAttributes::visit(AttributeVisitor& visitor) {
  visitor.field("block_shape", block_shape);
  visitor.field("paddings", paddings);
}

void BatchToSpaceAttributes::visit(AttributeVisitor& visitor) {
  visitor.field("block_shape", block_shape);
  visitor.field("crops", crops);
}

std::shared_ptr<Op> SpaceToBatchNd::make(const Attributes& attributes) {
  return std::make_shared<SpaceToBatchNdOp>(attributes);
}

std::shared_ptr<Op> BatchToSpaceNd::make(const Attributes& attributes) {
  return std::make_shared<BatchToSpaceNdOp>(attributes);
}

Output space_to_batch(Graph& graph, const std::string& name, Output x, const SpaceToBatchAttributes& attributes) {
  return graph.add(name, SpaceToBatchNd::make(attributes), {x}).output();
}

Output batch_to_space(Graph& graph, const std::string& name, Output x, const BatchToSpaceAttributes& attributes) {
  return graph.add(name, BatchToSpaceNd::make(attributes), {x}).output();
}

}  // namespace miniqat::layers
