#include "exporters/tflite/graph.h"

#include "core/text/error.h"
#include "exporters/tflite/rules.h"

namespace miniqat::exporters {

using integer::Clamp;
using integer::Grid;
using integer::TensorInfo;
using tflite_schema::OperatorKind;
using tflite_schema::Options;
using tflite_schema::TensorType;

std::vector<std::int32_t> tflite_shape(const Shape& example) {
  std::vector<std::int32_t> shape = {1};
  for (const std::int64_t extent : example.extents()) shape.push_back(static_cast<std::int32_t>(extent));
  return shape;
}

TfliteTensor TfliteGraph::on_grid(const std::string& name, std::vector<std::int32_t> shape, const Grid& grid) const {
  return {.name = name,
          .shape = std::move(shape),
          .type = type_,
          .scales = {grid.scale},
          .zero_points = {grid.zero_point - shift()}};
}

std::int32_t TfliteGraph::add_tensor(const TensorInfo& info) {
  return file_.add_tensor(on_grid(info.name, tflite_shape(info.shape), info.grid));
}

std::int32_t TfliteGraph::add_float_tensor(const std::string& name, const Shape& shape) {
  return file_.add_tensor({.name = name, .shape = tflite_shape(shape), .type = TensorType::FLOAT32});
}

std::int32_t TfliteGraph::add_integers(const std::string& name, const std::vector<std::int32_t>& shape,
                                       const std::vector<std::int32_t>& values) {
  return file_.add_constant({.name = name, .shape = shape, .type = TensorType::INT32}, values);
}

std::int32_t TfliteGraph::add_scalar(const std::string& name, const Grid& grid, std::int32_t q) {
  return file_.add_constant(on_grid(name, {1}, grid), std::vector{static_cast<std::uint8_t>(q - shift())});
}

std::int32_t TfliteGraph::clamped(const std::string& who, const TensorInfo& info, const Clamp& clamp, bool fuses,
                                  std::int32_t reach, const std::function<void(const TfliteTarget&)>& write) {
  const TfliteBounds bounds = tflite_bounds(info.grid, clamp, fuses, reach);
  if (bounds.at_most && info.grid.bits < 8)
    fail(
        "tflite: ", who, " writes \"", info.name, "\" of ", info.grid.bits,
        " bits, but TensorFlow Lite's activations have 8 bits and are clamped there; the formats miniqat, onnx, c and json hold it");
  const auto add = [&](bool last, const char* what) {
    return add_tensor({.name = last ? info.name : info.name + what, .shape = info.shape, .grid = info.grid});
  };
  std::int32_t tensor = add(!bounds.at_least && !bounds.at_most, "/unclamped");
  write({.tensor = tensor, .activation = bounds.activation});
  const auto add_bound = [&](OperatorKind kind, const char* name, std::int32_t q, std::int32_t output) {
    file_.add_operator({.kind = kind, .version = version()}, {tensor, add_scalar(info.name + name, info.grid, q)},
                       output);
    tensor = output;
  };
  if (bounds.at_least) add_bound(OperatorKind::MAXIMUM, "/min", *bounds.at_least, add(!bounds.at_most, "/raised"));
  if (bounds.at_most) add_bound(OperatorKind::MINIMUM, "/max", *bounds.at_most, add(true, ""));
  return tensor;
}

void TfliteGraph::add_mul(std::int32_t a, std::int32_t b, bool grows, const TfliteTarget& target) {
  // The third version multiplies by 1 and more.
  file_.add_operator({.kind = OperatorKind::MUL,
                      .version = grows ? 3 : version(),
                      .options_type = Options::MulOptions,
                      .options = tflite_schema::CreateMulOptions(builder(), target.activation).Union()},
                     {a, b}, target.tensor);
}

std::int32_t TfliteGraph::rescaled(const std::string& who, std::int32_t tensor, const Grid& from, const TensorInfo& to,
                                   const Clamp& clamp) {
  // QUANTIZE is the format's own way, but XNNPACK rounds its ratio of scales to 8 bits. A product with 1 is exact.
  return clamped(who, to, clamp, true, kByteMax, [&](const TfliteTarget& target) {
    const Grid integers = {.scale = 1, .zero_point = shift()};
    const std::int32_t one = add_scalar(to.name + "/one", integers, shift() + 1);
    add_mul(tensor, one, from.scale >= to.grid.scale, target);
  });
}

std::int32_t TfliteGraph::padded(std::int32_t tensor, const std::vector<std::array<std::int64_t, 2>>& paddings,
                                 const TensorInfo& to, std::optional<std::int32_t> value) {
  std::vector<std::int32_t> borders = {0, 0};
  for (const auto& [before, after] : paddings) {
    borders.push_back(static_cast<std::int32_t>(before));
    borders.push_back(static_cast<std::int32_t>(after));
  }
  const auto axes = static_cast<std::int32_t>(paddings.size()) + 1;
  std::vector<std::int32_t> inputs = {tensor, add_integers(to.name + "/paddings", {axes, 2}, borders)};
  if (value) inputs.push_back(add_scalar(to.name + "/border", to.grid, *value));
  const std::int32_t output = add_tensor(to);
  file_.add_operator({.kind = value ? OperatorKind::PADV2 : OperatorKind::PAD, .version = version()}, inputs, output);
  return output;
}

std::int32_t TfliteGraph::sliced(const std::string& who, std::int32_t tensor, const integer::Slice& slice,
                                 const TensorInfo& to) {
  constexpr int kMostAxes = 5;
  if (to.shape.rank() >= kMostAxes)
    fail("tflite: ", who, " makes ", to.shape, " an example; TensorFlow Lite slices up to ", kMostAxes, " axes");
  // The batch, whatever its size, is kept by the masks.
  std::vector<std::int32_t> begins = {0}, ends = {0}, strides = {1};
  for (int axis = 0; axis < to.shape.rank(); ++axis) {
    begins.push_back(static_cast<std::int32_t>(slice.starts[axis]));
    strides.push_back(static_cast<std::int32_t>(slice.steps[axis]));
    ends.push_back(static_cast<std::int32_t>(slice.starts[axis] + (to.shape[axis] - 1) * slice.steps[axis] + 1));
  }
  const auto axes = static_cast<std::int32_t>(begins.size());
  const std::vector<std::int32_t> inputs = {tensor, add_integers(to.name + "/begins", {axes}, begins),
                                            add_integers(to.name + "/ends", {axes}, ends),
                                            add_integers(to.name + "/strides", {axes}, strides)};
  const std::int32_t output = add_tensor(to);
  file_.add_operator({.kind = OperatorKind::STRIDED_SLICE,
                      .version = version(),
                      .options_type = Options::StridedSliceOptions,
                      .options = tflite_schema::CreateStridedSliceOptions(builder(), 1, 1).Union()},
                     inputs, output);
  return output;
}

std::int32_t TfliteGraph::looked_up(std::int32_t tensor, const Shape& shape, const std::vector<std::uint8_t>& table,
                                    const TensorInfo& to) {
  std::vector<std::uint8_t> bytes;
  for (const std::uint8_t q : table) bytes.push_back(static_cast<std::uint8_t>(q - shift()));
  const auto size = static_cast<std::int32_t>(table.size());
  const std::int32_t values = file_.add_constant(on_grid(to.name + "/table", {size}, to.grid), bytes);
  // GATHER wants indices of 32 bits, from 0 on.
  const auto add_indices = [&](const char* what) {
    return file_.add_tensor({.name = to.name + what, .shape = tflite_shape(shape), .type = TensorType::INT32});
  };
  std::int32_t indices = add_indices("/indices");
  file_.add_operator({.kind = OperatorKind::CAST}, {tensor}, indices);
  if (is_signed_) {
    const std::int32_t raised = add_indices("/raised");
    file_.add_operator({.kind = OperatorKind::ADD,
                        .options_type = Options::AddOptions,
                        .options = CreateAddOptions(builder(), tflite_schema::Activation::NONE).Union()},
                       {indices, add_integers(to.name + "/shift", {1}, {shift()})}, raised);
    indices = raised;
  }
  const std::int32_t output = add_tensor(to);
  file_.add_operator({.kind = OperatorKind::GATHER, .version = version()}, {values, indices}, output);
  return output;
}

}  // namespace miniqat::exporters
