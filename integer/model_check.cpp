#include <algorithm>
#include <cmath>
#include <set>

#include "core/error.h"
#include "core/text/quote.h"
#include "integer/model.h"

namespace miniqat::integer {
namespace {

constexpr std::int64_t kLargestExtent = 65536;

bool is_plain_name(const std::string& name) {
  return !name.empty() && std::ranges::all_of(name, [](unsigned char c) { return c >= ' ' && c < 127; });
}

std::string name_of(const Operation& operation) {
  return concat("[", type_name(operation.action), " ", quote(operation.name), "]");
}

/// Checks one operation. Every failure names it.
class OperationCheck {
 public:
  OperationCheck(const Model& model, const Operation& operation) : model_(model), operation_(operation) {}

  void run() {
    const Grid& grid = output().grid;
    require(operation_.clamp.min >= 0 && operation_.clamp.min <= operation_.clamp.max &&
                operation_.clamp.max <= grid.quant_max(),
            "its clamp [", operation_.clamp.min, ", ", operation_.clamp.max, "] is not within [0, ", grid.quant_max(),
            "]");
    std::visit([this](const auto& action) { check(action); }, operation_.action);
  }

 private:
  template <class... Parts>
  void require(bool holds, const Parts&... parts) const {
    if (!holds) fail("integer model: ", name_of(operation_), " ", parts...);
  }
  const TensorInfo& input(std::size_t i = 0) const { return model_.input_of(operation_, i); }
  const TensorInfo& output() const { return model_.output_of(operation_); }
  /// How far from its zero point an integer of the input may be.
  std::int64_t farthest() const {
    const Grid& grid = input().grid;
    return std::max(grid.zero_point, grid.quant_max() - grid.zero_point);
  }

  void require_inputs(std::size_t count) const {
    require(operation_.inputs.size() == count, "takes ", count, " inputs, not ", operation_.inputs.size());
  }
  Shape shape_of(const std::vector<std::int64_t>& extents) const {
    try {
      return Shape(extents);
    } catch (const Error& error) {
      fail("integer model: ", name_of(operation_), " makes too much: ", error.what());
    }
  }
  void require_output_shape(const std::vector<std::int64_t>& extents) const {
    const Shape shape = shape_of(extents);
    require(output().shape == shape, "makes ", shape, ", its output is ", output().shape);
  }
  void require_one_grid() const {
    require(input().grid == output().grid, "keeps its input's scale, zero point and bits");
  }
  void require_shift(std::int32_t shift, std::int32_t largest) const {
    require(shift >= 1 && shift <= largest, "has a multiplier's shift of ", shift, ", not in 1..", largest);
  }
  void require_multiplier(const Multiplier& multiplier) const {
    require(multiplier.mantissa == 0 || multiplier.mantissa >= 1 << 30, "has a multiplier's mantissa of ",
            multiplier.mantissa, ", not 0 and not in [2^30, 2^31)");
    require_shift(multiplier.shift, Multiplier::kLargestShift);
  }

  void require_axis(const WindowAxis& axis) const {
    for (const std::int64_t extent : {axis.input, axis.window, axis.stride, axis.dilation, axis.output})
      require(extent >= 1 && extent <= kLargestExtent, "has a window whose extents are not in 1..", kLargestExtent);
    require(axis.pad_before >= 0 && axis.pad_before <= kLargestExtent && axis.pad_after >= 0 &&
                axis.pad_after <= kLargestExtent,
            "has a padding out of 0..", kLargestExtent);
    const std::int64_t reach = axis.source(axis.output - 1, axis.window - 1);
    require(reach < axis.input + axis.pad_after, "has a window that reaches to ", reach, ", behind its padding");
  }
  /// Window and images fit. Returns the output's [oh, ow].
  void require_window(const Window2d& window) const {
    require(input().shape.rank() == 3, "takes an image [h, w, c], not ", input().shape);
    require_axis(window.rows);
    require_axis(window.columns);
    require(window.rows.input == input().shape[0] && window.columns.input == input().shape[1], "has a window over [",
            window.rows.input, ", ", window.columns.input, "], its input is ", input().shape);
  }

  void check(const Layer& layer) const;
  void check_weights(const Layer& layer) const;
  void require_sums_fit(const Layer& layer) const;

  void check(const Add& add) const {
    require_inputs(2);
    require_same_shapes();
    require(add.multipliers.mantissas.size() == 2, "takes two multipliers");
    for (const std::int32_t mantissa : add.multipliers.mantissas)
      require(mantissa >= 0 && mantissa <= SharedMultipliers::kLargestMantissa, "has a multiplier's mantissa of ",
              mantissa, ", not in [0, 2^21]");
    require_shift(add.multipliers.shift, SharedMultipliers::kLargestShift);
  }
  void check(const Mul& mul) const {
    require_inputs(2);
    require_stretched_shapes(input(0).shape, input(1).shape);
    require_multiplier(mul.multiplier);
  }
  void require_stretched_shapes(const Shape& a, const Shape& b) const {
    bool fits = a.rank() == b.rank() && a.rank() == output().shape.rank();
    for (int axis = 0; fits && axis < a.rank(); ++axis)
      fits = (a[axis] == b[axis] || a[axis] == 1 || b[axis] == 1) && output().shape[axis] == std::max(a[axis], b[axis]);
    require(fits, "has inputs ", a, " and ", b, ", which cannot be stretched to its output ", output().shape);
  }
  void require_same_shapes() const {
    for (std::size_t i = 0; i < operation_.inputs.size(); ++i)
      require(input(i).shape == output().shape, "has inputs and output of one shape, but ", input(i).shape, " and ",
              output().shape);
  }
  void check(const Rescale& rescale) const {
    require_inputs(1);
    require_same_shapes();
    require_multiplier(rescale.multiplier);
  }

  void check(const Concat& concat) const {
    const int rank = output().shape.rank();
    require(!operation_.inputs.empty(), "takes at least one input");
    require(concat.multipliers.size() == operation_.inputs.size(), "takes one multiplier an input");
    require(concat.axis >= 0 && concat.axis < rank, "joins along axis ", concat.axis, " of ", output().shape);
    for (const Multiplier& multiplier : concat.multipliers) require_multiplier(multiplier);
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < operation_.inputs.size(); ++i) {
      require(input(i).shape.rank() == rank, "joins ", input(i).shape, " into ", output().shape);
      for (int axis = 0; axis < rank; ++axis)
        require(axis == concat.axis || input(i).shape[axis] == output().shape[axis], "joins ", input(i).shape, " into ",
                output().shape);
      sum += input(i).shape[concat.axis];
    }
    require(sum == output().shape[concat.axis], "joins inputs of ", sum, " in all into ", output().shape);
  }

  void check(const AveragePool& pool) const {
    require_inputs(1);
    require_window(pool.window);
    const auto& [rows, columns] = pool.window;
    const Shape image = shape_of({rows.output, columns.output, input().shape[2]});
    require(output().shape == image || (output().shape == Shape{image[2]} && rows.output * columns.output == 1),
            "makes ", image, ", its output is ", output().shape);
    require(static_cast<std::int64_t>(pool.multipliers.size()) == rows.window * columns.window,
            "takes one multiplier for each number of pixels in a window");
    for (const Multiplier& multiplier : pool.multipliers) require_multiplier(multiplier);
    require(rows.window * columns.window <= INT32_MAX / farthest(), "may have a sum that does not fit 32 bits");
    require_pixels(pool.window);
  }
  void check(const MaxPool& pool) const {
    require_inputs(1);
    require_window(pool.window);
    require_output_shape({pool.window.rows.output, pool.window.columns.output, input().shape[2]});
    require_one_grid();
    require_pixels(pool.window);
  }
  /// No window lies on padding alone: the first tap that is not before the image lies on it.
  void require_pixels(const Window2d& window) const {
    for (const WindowAxis& axis : {window.rows, window.columns})
      for (std::int64_t o = 0; o < axis.output; ++o) {
        const std::int64_t before = std::max<std::int64_t>(-axis.source(o, 0), 0);
        const std::int64_t tap = (before + axis.dilation - 1) / axis.dilation;
        require(tap < axis.window && axis.contains(axis.source(o, tap)), "has a window that lies on padding alone");
      }
  }

  void check(const Reshape&) const {
    require_inputs(1);
    require_one_grid();
    require(input().shape.elements() == output().shape.elements(), "makes ", output().shape, " of ", input().shape);
  }
  void check(const Pad& pad) const {
    require_inputs(1);
    require_one_grid();
    const Shape& shape = input().shape;
    require(static_cast<int>(pad.paddings.size()) == shape.rank(), "takes one pair of paddings an axis");
    std::vector<std::int64_t> padded = shape.to_vector();
    for (std::size_t axis = 0; axis < padded.size(); ++axis) {
      const auto& [before, after] = pad.paddings[axis];
      require(before >= 0 && before <= kLargestExtent && after >= 0 && after <= kLargestExtent,
              "has a padding out of 0..", kLargestExtent);
      padded[axis] += before + after;
    }
    require_output_shape(padded);
  }

  void check(const Slice& slice) const {
    require_inputs(1);
    require_one_grid();
    const Shape& from = input().shape;
    const Shape& to = output().shape;
    const auto rank = static_cast<std::size_t>(from.rank());
    require(slice.starts.size() == rank && slice.steps.size() == rank, "takes one start and one step an axis");
    require(to.rank() == from.rank(), "makes ", to, " of ", from);
    for (int axis = 0; axis < from.rank(); ++axis) {
      const std::int64_t start = slice.starts[axis], step = slice.steps[axis];
      require(start >= 0 && start < from[axis], "begins at ", start, " of an axis of ", from[axis]);
      require(step >= 1 && step <= kLargestExtent, "has a step of ", step, ", not in 1..", kLargestExtent);
      require(to[axis] - 1 <= (from[axis] - 1 - start) / step, "makes ", to, " of ", from, ", of which it keeps less");
    }
  }

  void check(const Lookup& lookup) const {
    require_inputs(1);
    require_same_shapes();
    require(is_plain_name(lookup.function), "has a function whose name is empty or holds more than printable ASCII");
    const auto integers = static_cast<std::size_t>(input().grid.quant_max()) + 1;
    require(lookup.table.size() == integers, "has a table of ", lookup.table.size(), " for ", integers, " integers");
    for (const std::uint8_t y : lookup.table)
      require(y >= operation_.clamp.min && y <= operation_.clamp.max, "has a table with ", int{y},
              ", which is beyond its clamp");
  }

  const Model& model_;
  const Operation& operation_;
};

void OperationCheck::check(const Layer& layer) const {
  require_inputs(1);
  if (layer.kind == LayerKind::kFullyConnected) {
    require(layer.filter.rank() == 2 && input().shape == Shape{layer.filter[0]}, "has weights ", layer.filter,
            ", its input is ", input().shape);
    for (const WindowAxis& axis : {layer.window.rows, layer.window.columns})
      require(axis.input == 1 && axis.window == 1 && axis.output == 1 && axis.stride == 1 && axis.dilation == 1 &&
                  axis.pad_before == 0 && axis.pad_after == 0,
              "has a window");
    require_output_shape({layer.filter[1]});
  } else {
    require_window(layer.window);
    require(layer.filter.rank() == 4 && layer.filter[0] == layer.window.rows.window &&
                layer.filter[1] == layer.window.columns.window && layer.filter[2] == input().shape[2],
            "has weights ", layer.filter, ", its input is ", input().shape);
    require_output_shape({layer.window.rows.output, layer.window.columns.output, layer.output_channels()});
  }
  check_weights(layer);
  require_sums_fit(layer);
}

void OperationCheck::check_weights(const Layer& layer) const {
  require(layer.weight_bits >= 2 && layer.weight_bits <= 8, "has weights of ", layer.weight_bits,
          " bits; 2 to 8 are known");
  require(static_cast<std::int64_t>(layer.weights.size()) == layer.filter.elements(), "has ", layer.weights.size(),
          " weights for ", layer.filter);
  const std::int32_t largest = (1 << layer.weight_bits) - 1;
  for (const std::uint8_t weight : layer.weights)
    require(weight <= largest, "has a weight ", int{weight}, " beyond ", largest);
  const auto channels = static_cast<std::size_t>(layer.output_channels());
  const std::size_t grids = layer.weight_scales.size();
  require(grids == 1 || grids == channels, "has ", grids, " weight scales for ", channels, " channels");
  require(layer.weight_zero_points.size() == grids && layer.multipliers.size() == grids,
          "has as many zero points and multipliers as weight scales");
  require(layer.bias.size() == channels, "has ", layer.bias.size(), " biases for ", channels, " channels");
  for (std::size_t i = 0; i < grids; ++i) {
    require(std::isnormal(layer.weight_scales[i]) && layer.weight_scales[i] > 0, "has a weight scale of ",
            layer.weight_scales[i]);
    require(layer.weight_zero_points[i] >= 0 && layer.weight_zero_points[i] <= largest, "has a weight zero point ",
            layer.weight_zero_points[i], " beyond ", largest);
    require_multiplier(layer.multipliers[i]);
  }
}

void OperationCheck::require_sums_fit(const Layer& layer) const {
  const std::int64_t channels = layer.output_channels();
  std::vector<std::int64_t> sums(static_cast<std::size_t>(channels));
  for (std::int64_t i = 0; i < layer.filter.elements(); ++i)
    sums[i % channels] += std::abs(layer.weight_units(i)) * farthest();
  for (std::int64_t o = 0; o < channels; ++o)
    require(sums[o] + std::abs(std::int64_t{layer.bias[o]}) <= INT32_MAX, "channel ", o,
            " may have a sum that does not fit 32 bits: ", sums[o], " and a bias of ", layer.bias[o]);
}

/// Messages quote names, and whoever reads the model may print them.
void check_name(const std::string& name, std::string_view whose) {
  if (!is_plain_name(name)) fail("integer model: the name of ", whose, " is empty or holds more than printable ASCII");
}

void check_tensor(const TensorInfo& tensor) {
  const Grid& grid = tensor.grid;
  if (tensor.shape.elements() < 1) fail("integer model: tensor ", quote(tensor.name), " is empty: ", tensor.shape);
  if (tensor.shape.rank() > Shape::kMaxRank - 1)
    fail("integer model: tensor ", quote(tensor.name), " has no room for a batch");
  if (grid.bits < 2 || grid.bits > 8)
    fail("integer model: tensor ", quote(tensor.name), " has ", grid.bits, " bits; 2 to 8 are known");
  if (!std::isnormal(grid.scale) || grid.scale < 0)
    fail("integer model: tensor ", quote(tensor.name), " has a scale of ", grid.scale);
  if (grid.zero_point < 0 || grid.zero_point > grid.quant_max())
    fail("integer model: tensor ", quote(tensor.name), " has a zero point of ", grid.zero_point, ", not in [0, ",
         grid.quant_max(), "]");
}

}  // namespace

void Model::check() const {
  const auto count = static_cast<int>(tensors.size());
  const auto require_tensor = [count](int i, const std::string& what) {
    if (i < 0 || i >= count) fail("integer model: ", what, " is tensor ", i, " of ", count);
  };
  require_tensor(input, "its input");
  require_tensor(output, "its output");
  if (input != 0) fail("integer model: its input is tensor ", input, ", not the first");
  const auto has_controls = [](const std::string& text) {
    return std::ranges::any_of(text, [](unsigned char c) { return c < ' ' || c == 127; });
  };
  if (has_controls(name)) fail("integer model: its name holds control characters");
  if (std::ranges::any_of(class_names, has_controls))
    fail("integer model: the name of a class holds control characters");
  if (!class_names.empty() && std::ssize(class_names) != tensor(output).shape.elements())
    fail("integer model: there are ", class_names.size(), " names of classes for an output of ",
         tensor(output).shape.elements());
  for (const TensorInfo& tensor : tensors) check_name(tensor.name, "a tensor");
  for (const Operation& operation : operations) check_name(operation.name, "an operation");
  std::set<std::string> names;
  for (const TensorInfo& tensor : tensors) {
    check_tensor(tensor);
    if (!names.insert(tensor.name).second) fail("integer model: two tensors are called ", quote(tensor.name));
  }
  std::set<int> ready = {input};
  for (const Operation& operation : operations) {
    const std::string what = concat("a tensor of ", name_of(operation));
    for (const int i : operation.inputs) {
      require_tensor(i, what);
      if (!ready.contains(i)) fail("integer model: ", what, " is read before it is made: ", quote(tensor(i).name));
    }
    require_tensor(operation.output, what);
    if (!ready.insert(operation.output).second)
      fail("integer model: ", what, " is made twice: ", quote(tensor(operation.output).name));
    OperationCheck(*this, operation).run();
  }
  if (static_cast<int>(ready.size()) != count) fail("integer model: a tensor is made by no operation");
}

}  // namespace miniqat::integer
