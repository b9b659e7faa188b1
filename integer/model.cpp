#include "integer/model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "core/tensors/tensor.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "integer/ops/operation_check.h"

namespace miniqat::integer {
namespace {

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

bool has_controls(const std::string& text) {
  return std::ranges::any_of(text, [](unsigned char c) { return c < ' ' || c == 127; });
}

void check_texts(const Model& model) {
  if (has_controls(model.name)) fail("integer model: its name holds control characters");
  if (std::ranges::any_of(model.class_names, has_controls))
    fail("integer model: the name of a class holds control characters");
  const std::int64_t outputs = model.tensor(model.output).shape.elements();
  if (!model.class_names.empty() && std::ssize(model.class_names) != outputs)
    fail("integer model: there are ", counted(model.class_names.size(), "name"), " of classes for an output of ",
         outputs);
  for (const TensorInfo& tensor : model.tensors) check_name(tensor.name, "a tensor");
  for (const Operation& operation : model.operations) check_name(operation.name, "an operation");
}

void check_standard(const std::optional<Standard>& standard, std::int64_t channels, std::string_view whose) {
  if (!standard) return;
  if (std::ssize(standard->mean) != channels || std::ssize(standard->deviation) != channels)
    fail("integer model: its ", whose, " has ", counted(standard->mean.size(), "mean"), " and ",
         counted(standard->deviation.size(), "deviation"), ", not ", channels, " of each");
  for (const float mean : standard->mean)
    if (!std::isfinite(mean)) fail("integer model: its ", whose, " has a mean of ", mean);
  for (const float deviation : standard->deviation)
    if (!std::isfinite(deviation) || !(deviation > 0))
      fail("integer model: its ", whose, " has a deviation of ", deviation);
}

void check_task(const Model& model) {
  if (!model.task.empty() && std::ranges::find(kTasksOfNumbers, model.task) == kTasksOfNumbers.end())
    fail("integer model: the task ", quote(model.task), " is unknown");
  const Shape& input = model.tensor(model.input).shape;
  check_standard(model.input_standard, input.rank() == 0 ? 1 : input[-1], "input");
  if (model.output_standard && model.task != "regress")
    fail("integer model: its output is standardised, which only that of the task \"regress\" is");
  check_standard(model.output_standard, model.tensor(model.output).shape.elements(), "output");
}

}  // namespace

std::string_view type_name(const Action& action) {
  return std::visit(
      []<class Kind>(const Kind& of) {
        if constexpr (std::is_same_v<Kind, Layer>)
          return kLayerKindNames[static_cast<std::size_t>(of.kind)];
        else
          return Kind::kType;
      },
      action);
}

void Model::check() const {
  const auto count = static_cast<int>(tensors.size());
  const auto require_tensor = [count](int i, const std::string& what) {
    if (i < 0 || i >= count) fail("integer model: ", what, " is tensor ", i, " of ", count);
  };
  require_tensor(input, "its input");
  require_tensor(output, "its output");
  if (input != 0) fail("integer model: its input is tensor ", input, ", not the first");
  check_texts(*this);
  std::set<std::string> names;
  for (const TensorInfo& tensor : tensors) {
    check_tensor(tensor);
    if (!names.insert(tensor.name).second) fail("integer model: two tensors are called ", quote(tensor.name));
  }
  std::set<int> ready = {input};
  check_task(*this);
  for (const Operation& operation : operations) {
    const OperationCheck rules(*this, operation);
    const std::string what = "a tensor of " + rules.who();
    for (const int i : operation.inputs) {
      require_tensor(i, what);
      if (!ready.contains(i)) fail("integer model: ", what, " is read before it is made: ", quote(tensor(i).name));
    }
    require_tensor(operation.output, what);
    if (!ready.insert(operation.output).second)
      fail("integer model: ", what, " is made twice: ", quote(tensor(operation.output).name));
    rules.run();
  }
  if (static_cast<int>(ready.size()) != count) fail("integer model: a tensor is made by no operation");
}

std::int64_t Model::weight_bytes() const {
  std::int64_t bytes = 0;
  for (const Operation& operation : operations)
    if (const auto* layer = std::get_if<Layer>(&operation.action))
      bytes += packed_size(layer->filter.elements(), layer->weight_bits);
  return bytes;
}

std::int64_t Model::multiply_adds() const {
  std::int64_t sum = 0;
  for (const Operation& operation : operations)
    if (const auto* layer = std::get_if<Layer>(&operation.action))
      sum += layer->filter.elements() * layer->window.rows.output * layer->window.columns.output;
  return sum;
}

Shape batch_shape(std::int64_t n, const Shape& example) {
  if (example.rank() >= Shape::kMaxRank) fail("no room for a batch in ", example);
  std::array<std::int64_t, Shape::kMaxRank> extents = {n};
  std::ranges::copy(example.extents(), extents.begin() + 1);
  return Shape(std::span(extents).first(static_cast<std::size_t>(example.rank()) + 1));
}

std::int64_t batch_size(const Tensor& batch, const TensorInfo& info) {
  const bool fits = batch.dtype() == DType::kUInt8 && batch.shape().rank() > 0 && batch.shape()[0] >= 1 &&
                    batch.shape() == batch_shape(batch.shape()[0], info.shape);
  if (!fits)
    fail("tensor ", quote(info.name), " takes a batch of ", info.shape, " uint8, not ", batch.shape(), " ",
         name_of(batch.dtype()));
  return batch.shape()[0];
}

std::vector<std::uint8_t> pack(std::span<const std::uint8_t> values, int bits) {
  std::vector<std::uint8_t> bytes(packed_size(static_cast<std::int64_t>(values.size()), bits));
  std::size_t bit = 0;
  for (const std::uint8_t value : values) {
    const unsigned shifted = static_cast<unsigned>(value) << (bit % 8);
    bytes[bit / 8] |= static_cast<std::uint8_t>(shifted);
    if (bit % 8 + bits > 8) bytes[bit / 8 + 1] |= static_cast<std::uint8_t>(shifted >> 8);
    bit += bits;
  }
  return bytes;
}

std::vector<std::uint8_t> unpack(std::span<const std::uint8_t> bytes, std::int64_t count, int bits) {
  if (static_cast<std::int64_t>(bytes.size()) != packed_size(count, bits))
    fail(count, " integers of ", bits, " bits take ", packed_size(count, bits), " bytes, not ", bytes.size());
  std::vector<std::uint8_t> values(count);
  const unsigned mask = (1u << bits) - 1;
  std::size_t bit = 0;
  for (std::uint8_t& value : values) {
    unsigned window = bytes[bit / 8];
    if (bit % 8 + bits > 8) window |= static_cast<unsigned>(bytes[bit / 8 + 1]) << 8;
    value = static_cast<std::uint8_t>((window >> (bit % 8)) & mask);
    bit += bits;
  }
  return values;
}

std::vector<std::uint8_t> transpose(std::span<const std::uint8_t> matrix, std::int64_t rows) {
  const std::int64_t columns = static_cast<std::int64_t>(matrix.size()) / rows;
  std::vector<std::uint8_t> transposed(matrix.size());
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; ++column)
      transposed[column * rows + row] = matrix[row * columns + column];
  return transposed;
}

}  // namespace miniqat::integer
