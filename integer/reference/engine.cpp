#include "integer/reference/engine.h"

#include <algorithm>

#include "core/error.h"
#include "core/interruption.h"
#include "integer/batch_shape.h"

namespace miniqat::integer::reference {
namespace {

/// One operation on a batch of n examples.
class Runner {
 public:
  Runner(const Model& model, const Operation& operation, std::span<const Tensor> inputs)
      : model_(model), operation_(operation), inputs_(inputs) {
    if (inputs.size() != operation.inputs.size())
      fail("[", type_name(operation.action), " \"", operation.name, "\"] takes ", operation.inputs.size(),
           " inputs, not ", inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::int64_t n = batch_size(inputs[i], model.input_of(operation, i));
      if (i > 0 && n != n_) fail("batches of ", n_, " and ", n, " examples");
      n_ = n;
    }
    output_ = Tensor(batch_shape(n_, model.output_of(operation).shape), DType::kUInt8);
    y_ = output_.values<std::uint8_t>();
  }

  Tensor run() {
    std::visit([this](const auto& action) { apply(action); }, operation_.action);
    return output_;
  }

 private:
  std::span<const std::uint8_t> x(std::size_t i = 0) const { return inputs_[i].values<std::uint8_t>(); }
  const Grid& grid(std::size_t i = 0) const { return model_.input_of(operation_, i).grid; }
  std::int32_t zero_point() const { return model_.output_of(operation_).grid.zero_point; }

  void apply(const Layer& layer) {
    const std::int64_t out = layer.output_channels();
    const std::int64_t in = model_.input_of(operation_).shape.channels();
    const bool depthwise = layer.kind == LayerKind::kDepthwiseConv2d;
    const std::int64_t fan = depthwise ? 1 : in;
    const std::int64_t multiplicity = out / in;
    std::vector<std::int32_t> sums(y_.size());
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = layer.bias[i % out];
    for_each_tap(n_, layer.window, [&](const Tap& tap) {
      for (std::int64_t o = 0; o < out; ++o)
        for (std::int64_t i = 0; i < fan; ++i) {
          const std::int32_t x_value = x()[tap.input * in + (depthwise ? o / multiplicity : i)] - grid().zero_point;
          sums[tap.output * out + o] += x_value * layer.weight_units((tap.window * fan + i) * out + o);
        }
    });
    for (std::size_t i = 0; i < sums.size(); ++i)
      y_[i] = requantize(sums[i], layer.multiplier(i % out), zero_point(), operation_.clamp);
  }

  void apply(const Add& add) {
    const auto& mantissas = add.multipliers.mantissas;
    const int shift = add.multipliers.shift;
    for (std::size_t i = 0; i < y_.size(); ++i) {
      const std::int64_t a = std::int64_t{x(0)[i] - grid(0).zero_point} * mantissas[0];
      const std::int64_t b = std::int64_t{x(1)[i] - grid(1).zero_point} * mantissas[1];
      y_[i] = place(a + b, shift, zero_point(), operation_.clamp);
    }
  }

  void apply(const Mul& mul) {
    for (std::size_t i = 0; i < y_.size(); ++i) {
      const std::int32_t a = x(0)[stretched_place(i, 0)] - grid(0).zero_point;
      const std::int32_t b = x(1)[stretched_place(i, 1)] - grid(1).zero_point;
      y_[i] = requantize(a * b, mul.multiplier, zero_point(), operation_.clamp);
    }
  }

  /// Where input k has the number that belongs to number i of the output.
  std::int64_t stretched_place(std::size_t i, std::size_t k) const {
    const Shape& from = inputs_[k].shape();
    const Shape& to = output_.shape();
    std::int64_t rest = static_cast<std::int64_t>(i), place = 0, stride = 1;
    for (int axis = to.rank() - 1; axis >= 0; --axis) {
      if (from[axis] != 1) place += rest % to[axis] * stride;
      rest /= to[axis];
      stride *= from[axis];
    }
    return place;
  }

  void apply(const Rescale& rescale) {
    for (std::size_t i = 0; i < y_.size(); ++i)
      y_[i] = requantize(x()[i] - grid().zero_point, rescale.multiplier, zero_point(), operation_.clamp);
  }

  void apply(const Concat& concat) {
    const Shape& shape = output_.shape();
    std::int64_t blocks = n_, inner = 1;
    for (int axis = 0; axis < concat.axis; ++axis) blocks *= shape[axis + 1];
    for (int axis = concat.axis + 1; axis < shape.rank() - 1; ++axis) inner *= shape[axis + 1];
    const std::int64_t row = shape[concat.axis + 1] * inner;
    std::int64_t first = 0;
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
      const std::int64_t piece = inputs_[k].shape()[concat.axis + 1] * inner;
      for (std::int64_t block = 0; block < blocks; ++block)
        for (std::int64_t i = 0; i < piece; ++i)
          y_[block * row + first + i] = requantize(x(k)[block * piece + i] - grid(k).zero_point, concat.multipliers[k],
                                                   zero_point(), operation_.clamp);
      first += piece;
    }
  }

  void apply(const AveragePool& pool) {
    const std::int64_t channels = model_.input_of(operation_).shape[2];
    std::vector<std::int32_t> sums(y_.size());
    std::vector<std::int32_t> counts(y_.size() / channels);
    for_each_tap(n_, pool.window, [&](const Tap& tap) {
      ++counts[tap.output];
      for (std::int64_t c = 0; c < channels; ++c)
        sums[tap.output * channels + c] += x()[tap.input * channels + c] - grid().zero_point;
    });
    for (std::size_t i = 0; i < y_.size(); ++i)
      y_[i] = requantize(sums[i], pool.multipliers[counts[i / channels] - 1], zero_point(), operation_.clamp);
  }

  void apply(const MaxPool& pool) {
    const std::int64_t channels = model_.input_of(operation_).shape[2];
    std::ranges::fill(y_, std::uint8_t{0});
    for_each_tap(n_, pool.window, [&](const Tap& tap) {
      for (std::int64_t c = 0; c < channels; ++c) {
        std::uint8_t& y = y_[tap.output * channels + c];
        y = std::max(y, x()[tap.input * channels + c]);
      }
    });
  }

  void apply(const Reshape&) { std::ranges::copy(x(), y_.begin()); }

  void apply(const Pad& pad) {
    std::ranges::fill(y_, static_cast<std::uint8_t>(zero_point()));
    const Shape& from = inputs_[0].shape();
    const Shape& to = output_.shape();
    for (std::int64_t i = 0; i < from.elements(); ++i) {
      std::int64_t rest = i, place = 0, stride = 1;
      for (int axis = from.rank() - 1; axis >= 0; --axis) {
        const std::int64_t before = axis == 0 ? 0 : pad.paddings[axis - 1][0];
        place += (rest % from[axis] + before) * stride;
        rest /= from[axis];
        stride *= to[axis];
      }
      y_[place] = x()[i];
    }
  }

  void apply(const Slice& slice) {
    const Shape& from = inputs_[0].shape();
    const Shape& to = output_.shape();
    for (std::int64_t i = 0; i < to.elements(); ++i) {
      std::int64_t rest = i, place = 0, stride = 1;
      for (int axis = to.rank() - 1; axis >= 0; --axis) {
        const std::int64_t along = rest % to[axis];
        place += (axis == 0 ? along : slice.starts[axis - 1] + along * slice.steps[axis - 1]) * stride;
        rest /= to[axis];
        stride *= from[axis];
      }
      y_[i] = x()[place];
    }
  }

  void apply(const Lookup& lookup) {
    for (std::size_t i = 0; i < y_.size(); ++i)
      y_[i] = lookup.table[std::min<std::size_t>(x()[i], lookup.table.size() - 1)];
  }

  const Model& model_;
  const Operation& operation_;
  std::span<const Tensor> inputs_;
  std::int64_t n_ = 1;
  Tensor output_;
  std::span<std::uint8_t> y_;
};

}  // namespace

Tensor run_operation(const Model& model, const Operation& operation, std::span<const Tensor> inputs) {
  return Runner(model, operation, inputs).run();
}

std::vector<Tensor> run(const Model& model, const Tensor& images) {
  batch_size(images, model.tensor(model.input));
  std::vector<Tensor> tensors(model.tensors.size());
  tensors[model.input] = images;
  for (const Operation& operation : model.operations) {
    interruption_point();
    std::vector<Tensor> inputs;
    for (const int i : operation.inputs) inputs.push_back(tensors[i]);
    tensors[operation.output] = run_operation(model, operation, inputs);
  }
  return tensors;
}

}  // namespace miniqat::integer::reference
