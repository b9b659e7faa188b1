#include "exporters/c/operation.h"

#include <algorithm>
#include <numeric>

#include "core/memory/arena.h"
#include "core/text/error.h"
#include "core/text/suggest.h"
#include "exporters/c/text.h"

namespace miniqat::exporters {
namespace {

using integer::Operation;
using integer::TensorInfo;

/// Bytes of a number or a pointer.
constexpr std::int64_t kWord = 4;
/// The numbers in a struct of a window, and in a list of axes, in c_runtime().
constexpr std::int64_t kWindowFields = 12, kMostAxes = 7;
/// The output channels whose weights a layer unpacks at once.
constexpr std::int64_t kBlock = 4;
/// The numbers of its input that a fully connected layer unpacks weights for at once.
constexpr std::int64_t kStretch = 64;

/// The weights block after block of output channels; within a block in the filter's order.
std::vector<std::uint8_t> in_blocks(const integer::Layer& layer) {
  const std::int64_t out = layer.output_channels(), each = layer.filter.elements() / out;
  std::vector<std::uint8_t> weights;
  weights.reserve(layer.weights.size());
  for (std::int64_t first = 0; first < out; first += kBlock)
    for (std::int64_t i = 0; i < each; ++i) {
      const auto group = layer.weights.begin() + i * out + first;
      weights.insert(weights.end(), group, group + std::min(kBlock, out - first));
    }
  return weights;
}

class Emitter {
 public:
  Emitter(const integer::Model& model, std::size_t index, const CMemory& memory, const std::string& weights_section)
      : model_(model),
        operation_(model.operations[index]),
        memory_(memory),
        weights_section_(weights_section),
        number_(std::to_string(index + 1)) {}

  COperation emit() {
    std::visit([this](const auto& action) { emit(action); }, operation_.action);
    return std::move(c_);
  }

 private:
  const TensorInfo& input(std::size_t i = 0) const { return model_.input_of(operation_, i); }
  const TensorInfo& output() const { return model_.output_of(operation_); }
  const std::string& x(std::size_t i = 0) const { return memory_.pointers[operation_.inputs[i]]; }
  const std::string& y() const { return memory_.pointers[operation_.output]; }
  std::string named(std::string_view what) const { return concat(what, "_", number_); }

  /// One line of a struct's initializer: a number or a pointer of 32 bits.
  template <class... Parts>
  void field(std::string_view name, const Parts&... value) {
    fields(1, name, value...);
  }
  /// A line of the initializer for an array of `count` numbers.
  template <class... Parts>
  void fields(std::int64_t count, std::string_view name, const Parts&... value) {
    c_.data += concat("  .", name, " = ", value..., ",\n");
    c_.constant_bytes += kWord * count;
  }
  template <class Integer>
  void array(std::string_view type, std::string_view name, const std::vector<Integer>& values) {
    append_array(c_.data, type, named(name), values);
    c_.constant_bytes += static_cast<std::int64_t>(values.size() * sizeof(Integer));
  }
  void list(std::string_view name, const std::vector<std::int64_t>& values) {
    fields(kMostAxes, name, "{", joined(values), "}");
  }
  void begin(std::string_view type, const std::string& name) {
    c_.data += concat("static const struct ", type, " ", name, " = {\n");
  }
  void end() { c_.data += "};\n"; }
  template <class... Parts>
  void call(std::string_view kernel, const Parts&... arguments) {
    c_.kernels.insert(kernel);
    c_.calls += concat("      ", kernel, "(", arguments..., ");\n");
  }

  std::string window_fields(const Window2d& window) const {
    const auto& [r, c] = window;
    // One tap has no dilation, by which the C code multiplies all the same.
    const auto dilation = [](const WindowAxis& axis) { return axis.window == 1 ? 1 : axis.dilation; };
    return concat("{", r.input, ", ", c.input, ", ", r.output, ", ", c.output, ", ", r.window, ", ", c.window, ", ",
                  r.stride, ", ", c.stride, ", ", dilation(r), ", ", dilation(c), ", ", r.pad_before, ", ",
                  c.pad_before, "}");
  }
  void to() {
    const integer::Clamp& clamp = operation_.clamp;
    fields(3, "to", "{", output().grid.zero_point, ", ", clamp.min, ", ", clamp.max, "}");
  }
  void multiplier_arrays(const std::vector<integer::Multiplier>& multipliers) {
    std::vector<std::int32_t> mantissas;
    std::vector<std::uint8_t> shifts;
    for (const integer::Multiplier& multiplier : multipliers) {
      mantissas.push_back(multiplier.mantissa);
      shifts.push_back(static_cast<std::uint8_t>(multiplier.shift));
    }
    array("int32_t", "mantissas", mantissas);
    array("uint8_t", "shifts", shifts);
  }

  void emit(const integer::Layer& layer) {
    const std::int64_t out = layer.output_channels();
    if (layer.filter.elements() * layer.weight_bits > INT32_MAX)
      fail("C source: [", type_name(operation_.action), " \"", operation_.name,
           "\"] has weights of more than 2^31 bits");
    weights(layer);
    array("uint8_t", "weight_zero_points",
          std::vector<std::uint8_t>(layer.weight_zero_points.begin(), layer.weight_zero_points.end()));
    array("int32_t", "bias", layer.bias);
    multiplier_arrays(layer.multipliers);
    begin("layer", named("layer"));
    fields(kWindowFields, "window", window_fields(layer.window));
    field("in_channels", input().shape.channels());
    field("out_channels", out);
    field("channel_weights", layer.filter.elements() / out);
    field("weight_bits", layer.weight_bits);
    field("weight_unit", 1 << layer.weight_shift());
    field("per_channel", layer.per_channel() ? 1 : 0);
    for (const char* list : {"weights", "weight_zero_points", "bias", "mantissas", "shifts"}) field(list, named(list));
    unpackers(layer);
    field("x_zero_point", input().grid.zero_point);
    to();
    end();
    call(kernel_of(layer), "&", named("layer"), ", ", x(), ", ", y());
    c_.filter = kBlock * layer.filter.elements() / out;
    if (layer.kind == integer::LayerKind::kFullyConnected) c_.filter = std::min(c_.filter, kBlock * kStretch);
  }

  void weights(const integer::Layer& layer) {
    const std::vector<std::uint8_t> packed = integer::pack(in_blocks(layer), layer.weight_bits);
    c_.data += weights_section_ + " ";
    append_array(c_.data, "uint8_t", named("weights"), packed);
    c_.weight_bytes += static_cast<std::int64_t>(packed.size());
  }

  /// Whole blocks of the usual widths have functions of their own.
  void unpackers(const integer::Layer& layer) {
    const std::int64_t out = layer.output_channels();
    const auto unpacker = [&](std::string_view member, std::string_view kernel) {
      if (kernel != "NULL") c_.kernels.insert(kernel);
      field(member, kernel);
    };
    unpacker("unpack", out < kBlock             ? "NULL"
                       : layer.weight_bits == 8 ? "unpack_8"
                       : layer.weight_bits == 4 ? "unpack_4"
                       : layer.weight_bits == 2 ? "unpack_2"
                                                : "unpack_bits");
    unpacker("unpack_last", out % kBlock == 0 ? "NULL" : "unpack_bits");
  }

  static std::string_view kernel_of(const integer::Layer& layer) {
    switch (layer.kind) {
      case integer::LayerKind::kConv2d:
        return "convolve";
      case integer::LayerKind::kDepthwiseConv2d:
        return "convolve_depthwise";
      case integer::LayerKind::kFullyConnected:
        return "fully_connected";
    }
    fail("a layer of kind ", static_cast<int>(layer.kind));
  }

  void emit(const integer::Add& add) {
    begin("add", named("add"));
    field("a_zero_point", input(0).grid.zero_point);
    field("b_zero_point", input(1).grid.zero_point);
    field("a_mantissa", add.multipliers.mantissas[0]);
    field("b_mantissa", add.multipliers.mantissas[1]);
    field("shift", add.multipliers.shift);
    to();
    end();
    call("add", "&", named("add"), ", ", x(0), ", ", x(1), ", ", y(), ", ", output().shape.elements());
  }

  void emit(const integer::Mul& mul) {
    begin("multiply", named("multiply"));
    field("a_zero_point", input(0).grid.zero_point);
    field("b_zero_point", input(1).grid.zero_point);
    field("mantissa", mul.multiplier.mantissa);
    field("shift", mul.multiplier.shift);
    to();
    end();
    if (input(0).shape == input(1).shape)
      return call("multiply", "&", named("multiply"), ", ", x(0), ", ", x(1), ", ", y(), ", ",
                  output().shape.elements());
    stretch_struct(integer::stretched_pair(input(0).shape, input(1).shape));
    call("multiply_stretched", "&", named("multiply"), ", &", named("stretch"), ", ", x(0), ", ", x(1), ", ", y());
  }

  void stretch_struct(const integer::StretchedPair& pair) {
    std::vector<std::int64_t> a, b;
    for (const integer::StretchedPair::Offsets& stride : pair.strides) {
      a.push_back(stride.a);
      b.push_back(stride.b);
    }
    begin("stretch", named("stretch"));
    field("rank", pair.extents.size());
    list("extent", pair.extents);
    list("a_stride", a);
    list("b_stride", b);
    field("rows", output().shape.elements() / pair.row());
    end();
  }

  void rescale_struct(const std::string& name, const TensorInfo& x, const integer::Multiplier& multiplier) {
    begin("rescale", name);
    field("x_zero_point", x.grid.zero_point);
    field("mantissa", multiplier.mantissa);
    field("shift", multiplier.shift);
    to();
    end();
  }
  void emit(const integer::Rescale& rescale) {
    rescale_struct(named("rescale"), input(), rescale.multiplier);
    call("rescale", "&", named("rescale"), ", ", x(), ", ", y(), ", ", output().shape.elements());
  }

  void emit(const integer::Concat& join) {
    const Shape& shape = output().shape;
    std::int64_t blocks = 1;
    for (int axis = 0; axis < join.axis; ++axis) blocks *= shape[axis];
    const std::int64_t step = shape.elements() / blocks;
    std::int64_t first = 0;
    for (std::size_t i = 0; i < operation_.inputs.size(); ++i) {
      const std::string name = concat(named("join"), "_", i);
      const std::int64_t piece = input(i).shape.elements() / blocks;
      rescale_struct(name, input(i), join.multipliers[i]);
      call("join", "&", name, ", ", x(i), ", ", y(), " + ", first, ", ", blocks, ", ", piece, ", ", step);
      first += piece;
    }
  }

  void emit(const integer::AveragePool& pool) {
    multiplier_arrays(pool.multipliers);
    begin("average_pool", named("pool"));
    fields(kWindowFields, "window", window_fields(pool.window));
    field("channels", input().shape[2]);
    field("mantissas", named("mantissas"));
    field("shifts", named("shifts"));
    field("x_zero_point", input().grid.zero_point);
    to();
    end();
    call("average_pool", "&", named("pool"), ", ", x(), ", ", y());
    c_.sums = input().shape[2];
  }

  void emit(const integer::MaxPool& pool) {
    c_.data += concat("static const struct window ", named("window"), " = ", window_fields(pool.window), ";\n");
    c_.constant_bytes += kWord * kWindowFields;
    call("max_pool", "&", named("window"), ", ", input().shape[2], ", ", x(), ", ", y());
  }

  void emit(const integer::Reshape&) {
    if (x() != y()) c_.calls += concat("      memcpy(", y(), ", ", x(), ", ", output().shape.elements(), ");\n");
  }

  void emit(const integer::Pad& pad) {
    std::vector<std::int64_t> in = input().shape.to_vector(), out = output().shape.to_vector(), before;
    for (const auto& pair : pad.paddings) before.push_back(pair[0]);
    if (in.empty()) in = out = {1}, before = {0};
    begin("padding", named("padding"));
    field("rank", in.size());
    list("in", in);
    list("out", out);
    list("before", before);
    field("rows", input().shape.elements() / in.back());
    field("size", output().shape.elements());
    field("zero_point", output().grid.zero_point);
    end();
    call("pad", "&", named("padding"), ", ", x(), ", ", y());
  }

  void emit(const integer::Slice& slice) {
    std::vector<std::int64_t> in = input().shape.to_vector(), out = output().shape.to_vector();
    std::vector<std::int64_t> starts = slice.starts, steps = slice.steps;
    if (in.empty()) in = out = steps = {1}, starts = {0};
    begin("slice", named("slice"));
    field("rank", in.size());
    list("in", in);
    list("out", out);
    list("start", starts);
    list("step", steps);
    field("rows", output().shape.elements() / out.back());
    end();
    call("slice", "&", named("slice"), ", ", x(), ", ", y());
  }

  void emit(const integer::Lookup& lookup) {
    array("uint8_t", "table", lookup.table);
    call("look_up", named("table"), ", ", x(), ", ", y(), ", ", output().shape.elements());
  }

  const integer::Model& model_;
  const Operation& operation_;
  const CMemory& memory_;
  const std::string& weights_section_;
  std::string number_;
  COperation c_;
};

}  // namespace

CMemory plan_c_memory(const integer::Model& model) {
  // The tensor whose memory each has: itself, or what a Reshape looks at.
  std::vector<int> owners(model.tensors.size());
  std::iota(owners.begin(), owners.end(), 0);
  std::vector<Lifetime> lifetimes(model.tensors.size());
  for (int step = 0; step < static_cast<int>(model.operations.size()); ++step) {
    const integer::Operation& operation = model.operations[step];
    for (const int i : operation.inputs) lifetimes[owners[i]].last = step;
    if (std::holds_alternative<integer::Reshape>(operation.action) && operation.output != model.output)
      owners[operation.output] = owners[operation.inputs[0]];
    else
      lifetimes[operation.output] = {
          .bytes = static_cast<std::size_t>(model.output_of(operation).shape.elements()), .first = step, .last = step};
  }

  std::vector<int> in_arena;
  for (int i = 0; i < static_cast<int>(owners.size()); ++i)
    if (owners[i] == i && i != model.input && i != model.output) in_arena.push_back(i);
  std::vector<Lifetime> placed;
  placed.reserve(in_arena.size());
  for (const int i : in_arena) placed.push_back(lifetimes[i]);
  const ArenaLayout layout = place_in_arena(placed);

  CMemory memory{.pointers = std::vector<std::string>(owners.size()), .arena_bytes = layout.bytes};
  memory.pointers[model.output] = "output";
  memory.pointers[model.input] = "input";
  for (std::size_t k = 0; k < in_arena.size(); ++k)
    memory.pointers[in_arena[k]] = concat("arena + ", layout.offsets[k]);
  for (std::size_t i = 0; i < owners.size(); ++i) memory.pointers[i] = memory.pointers[owners[i]];
  return memory;
}

COperation c_operation(const integer::Model& model, std::size_t index, const CMemory& memory,
                       const std::string& weights_section) {
  return Emitter(model, index, memory, weights_section).emit();
}

}  // namespace miniqat::exporters
