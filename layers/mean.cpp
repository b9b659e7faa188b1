#include "layers/mean.h"

#include <algorithm>
#include <array>
#include <optional>

#include "core/graph/op.h"
#include "core/kernels/instruction_set.h"
#include "layers/kernels/broadcast.h"
#include "layers/kernels/pointwise.h"
#include "layers/reference/mean.h"

namespace miniqat::layers {
namespace {

/// The most channels whose sums are in registers at once.
constexpr std::int64_t kBlock = 64;

#define MINIQAT_LOOPS "layers/kernels/mean_loops.h"
#include "core/kernels/per_instruction_set.h"

using Averaged = std::array<bool, Shape::kMaxRank>;

/// Which axes of x are averaged over. Throws Error for axes that don't exist or are named twice.
Averaged averaged_axes(const Shape& x, std::span<const std::int64_t> axes) {
  Averaged averaged{};
  if (axes.empty()) averaged.fill(true);
  for (const std::int64_t axis : axes) {
    if (axis < -x.rank() || axis >= x.rank()) fail("axis ", axis, " does not exist in x ", x);
    const std::size_t index = axis < 0 ? axis + x.rank() : axis;
    if (averaged[index]) fail("axis ", axis, " is named twice; x ", x);
    averaged[index] = true;
  }
  return averaged;
}

/// The mean's shape with keep_dims: extent 1 in the axes that are averaged over.
Shape kept_shape(const Shape& x, std::span<const std::int64_t> axes) {
  const Averaged averaged = averaged_axes(x, axes);
  std::array<std::int64_t, Shape::kMaxRank> extents{};
  for (int axis = 0; axis < x.rank(); ++axis) extents[axis] = averaged[axis] ? 1 : x[axis];
  return Shape(std::span<const std::int64_t>(extents.data(), x.rank()));
}

/// The mean's shape without keep_dims.
Shape dropped_shape(const Shape& x, std::span<const std::int64_t> axes) {
  const Averaged averaged = averaged_axes(x, axes);
  std::vector<std::int64_t> extents;
  for (int axis = 0; axis < x.rank(); ++axis)
    if (!averaged[axis]) extents.push_back(x[axis]);
  return Shape(extents);
}

/// A mean over neighbouring axes, x seen as [outer, averaged, channels].
struct MiddleMean {
  std::int64_t outer = 1;
  std::int64_t averaged = 1;
  std::int64_t channels = 1;
};

/// Nothing when other axes lie between those that are averaged over, or when there are too few channels for vectors or
/// too few sums for several threads.
std::optional<MiddleMean> middle_mean(const Shape& x, const Shape& kept) {
  MiddleMean mean;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (x[axis] != kept[axis]) {
      if (mean.channels != 1) return {};
      mean.averaged *= x[axis];
    } else {
      (mean.averaged == 1 ? mean.outer : mean.channels) *= x[axis];
    }
  }
  constexpr std::int64_t kFewChannels = 16, kFewSums = 512;
  if (mean.channels < kFewChannels || mean.outer * mean.channels < kFewSums) return {};
  return mean;
}

/// y[o][c] = scale * sum over a of x[o][a][c].
void average_middle(const MiddleMean& mean, const float* x, double scale, float* y) {
  const auto loop = MINIQAT_PICK(average);
  const std::int64_t blocks = (mean.channels + kBlock - 1) / kBlock;
  const std::int64_t grain = std::max<std::int64_t>(1, kPointwiseGrain / (mean.averaged * kBlock));
  parallel_for(mean.outer * blocks, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t unit = begin; unit < end; ++unit) {
      const std::int64_t o = unit / blocks, first = unit % blocks * kBlock;
      loop(x + o * mean.averaged * mean.channels + first, mean.averaged, mean.channels,
           std::min(kBlock, mean.channels - first), scale, y + o * mean.channels + first);
    }
  });
}

class MeanOp final : public OpOf<Mean> {
 public:
  using OpOf::OpOf;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override {
    require_inputs(inputs, 1);
    require_float(inputs);
    const Shape& x = inputs[0].shape;
    if (x.elements() == 0) fail("the mean of no elements is undefined; x ", x);
    return {{(attributes_.keep_dims ? kept_shape : dropped_shape)(x, attributes_.axes), DType::kFloat32}};
  }

  void forward(const ForwardContext& context) const override {
    const Tensor& input = context.input(0);
    const Shape kept = kept_shape(input.shape(), attributes_.axes);
    const double scale = static_cast<double>(kept.elements()) / static_cast<double>(input.elements());
    const float* x = input.data<float>();
    float* y = context.output(0).data<float>();
    if (const auto middle = middle_mean(input.shape(), kept)) return average_middle(*middle, x, scale, y);
    const BroadcastLoop loop(kept, input.shape());
    const auto add = [&](std::int64_t begin, std::int64_t end, double* sums) {
      loop.with_steps([&](auto kept_step, auto) {
        loop.stretches(begin, end, [&](std::int64_t i, std::int64_t j, std::int64_t, std::int64_t length) {
          double* sum = sums + j;
          if (kept_step == 0) {
            double total = 0;
#pragma omp simd reduction(+ : total)
            for (std::int64_t k = 0; k < length; ++k) total += x[i + k];
            *sum += total;
          } else {
#pragma omp simd
            for (std::int64_t k = 0; k < length; ++k) sum[k] += x[i + k];
          }
        });
      });
    };
    sum_in_parts(input.elements(), kPointwiseGrain, kept.elements(), add,
                 [=](std::int64_t j, double total) { y[j] = static_cast<float>(total * scale); });
  }

  void backward(const BackwardContext& context) const override {
    if (!context.d_inputs[0]) return;
    const Shape& x = context.d_inputs[0]->shape();
    const Shape kept = kept_shape(x, attributes_.axes);
    const BroadcastLoop loop(kept, x);
    const float scale = static_cast<float>(static_cast<double>(kept.elements()) / static_cast<double>(x.elements()));
    const float* d_y = context.d_outputs[0]->data<float>();
    float* d_x = context.d_inputs[0]->data<float>();
    loop.with_steps([&](auto kept_step, auto) {
      parallel_for(loop.elements(), kPointwiseGrain, [&](std::int64_t begin, std::int64_t end) {
        loop.stretches(begin, end, [&](std::int64_t i, std::int64_t j, std::int64_t, std::int64_t length) {
#pragma omp simd
          for (std::int64_t k = 0; k < length; ++k) d_x[i + k] = d_y[j + k * kept_step] * scale;
        });
      });
    });
  }

  void reference_forward(const ForwardContext& context) const override {
    const Tensor& x = context.input(0);
    with_float_type(x, [&]<class T>(T) {
      reference::mean(x.shape(), kept_shape(x.shape(), attributes_.axes), x.data<T>(), context.output(0).data<T>());
    });
  }

  void reference_backward(const BackwardContext& context) const override {
    if (Tensor* d_x = context.d_inputs[0])
      with_float_type(*d_x, [&]<class T>(T) {
        reference::mean_d_x(d_x->shape(), kept_shape(d_x->shape(), attributes_.axes), context.d_outputs[0]->data<T>(),
                            d_x->data<T>());
      });
  }
};

}  // namespace

std::shared_ptr<Op> Mean::make(const Attributes& attributes) { return std::make_shared<MeanOp>(attributes); }

}  // namespace miniqat::layers
