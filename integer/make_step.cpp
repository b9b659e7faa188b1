#include "integer/make_step.h"

#include <array>
#include <cstring>

#include "core/tensor.h"
#include "integer/batch_shape.h"
#include "integer/kernels/add.h"
#include "integer/kernels/concat.h"
#include "integer/kernels/convolution.h"
#include "integer/kernels/depthwise.h"
#include "integer/kernels/lookup.h"
#include "integer/kernels/mul.h"
#include "integer/kernels/pad.h"
#include "integer/kernels/pools.h"
#include "integer/kernels/rescale.h"
#include "integer/kernels/reshape.h"
#include "integer/kernels/slice.h"
#include "integer/reference/engine.h"

namespace miniqat::integer {
namespace {

class ReferenceStep : public Step {
 public:
  ReferenceStep(const Model& model, const Operation& operation) : model_(model), operation_(operation) {}

  void run(std::int64_t n, std::span<const std::uint8_t* const> inputs, std::uint8_t* output) const override {
    const Shape shape = batch_shape(n, model_.input_of(operation_).shape);
    const Tensor x = Tensor::view(const_cast<std::uint8_t*>(inputs[0]), {shape, DType::kUInt8});
    const Tensor y = reference::run_operation(model_, operation_, std::span(&x, 1));
    std::memcpy(output, y.raw(), y.bytes());
  }

 private:
  const Model& model_;
  const Operation& operation_;
};

class Maker {
 public:
  Maker(const Model& model, const Operation& operation, const Operation* pool)
      : model_(model), operation_(operation), pool_(pool) {}

  std::unique_ptr<Step> operator()(const Layer& layer) const {
    // Of the pool's output, which has the grid of its input; its clamp does nothing.
    const TensorInfo& output = model_.output_of(operation_);
    if (layer.kind == LayerKind::kDepthwiseConv2d) return make<Depthwise>(layer, output);
    return make<Convolution>(layer, output, pool_ != nullptr ? &std::get<MaxPool>(pool_->action) : nullptr);
  }
  std::unique_ptr<Step> operator()(const Add&) const { return std::make_unique<AddStep>(model_, operation_); }
  std::unique_ptr<Step> operator()(const Mul&) const { return std::make_unique<MulStep>(model_, operation_); }
  std::unique_ptr<Step> operator()(const Rescale&) const { return std::make_unique<RescaleStep>(model_, operation_); }
  std::unique_ptr<Step> operator()(const Concat&) const { return std::make_unique<ConcatStep>(model_, operation_); }
  std::unique_ptr<Step> operator()(const AveragePool& pool) const {
    return std::make_unique<AveragePoolStep>(pool, input(), model_.output_of(operation_), operation_.clamp);
  }
  std::unique_ptr<Step> operator()(const MaxPool& pool) const {
    return std::make_unique<MaxPoolStep>(pool, input().shape[2]);
  }
  std::unique_ptr<Step> operator()(const Reshape&) const {
    return std::make_unique<ReshapeStep>(input().shape.elements());
  }
  std::unique_ptr<Step> operator()(const Pad&) const { return std::make_unique<PadStep>(model_, operation_); }
  std::unique_ptr<Step> operator()(const Slice& slice) const {
    return std::make_unique<SliceStep>(slice, input().shape, model_.output_of(operation_).shape);
  }
  std::unique_ptr<Step> operator()(const Lookup& lookup) const {
    return std::make_unique<LookupStep>(lookup, input().shape.elements());
  }

 private:
  const TensorInfo& input() const { return model_.input_of(operation_); }

  template <class LayerStep, class... Rest>
  std::unique_ptr<Step> make(const Layer& layer, const TensorInfo& output, const Rest&... rest) const {
    // (A pool is not fused into those.)
    if (LayerStep::scratch_bytes(layer) > kMostScratch) return std::make_unique<ReferenceStep>(model_, operation_);
    return std::make_unique<LayerStep>(layer, input(), output, operation_.clamp, rest...);
  }

  const Model& model_;
  const Operation& operation_;
  const Operation* pool_;
};

}  // namespace

std::unique_ptr<Step> make_step(const Model& model, const Operation& operation, const Operation* pool) {
  return std::visit(Maker(model, operation, pool), operation.action);
}

}  // namespace miniqat::integer
