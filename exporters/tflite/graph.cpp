#include "exporters/tflite/graph.h"

#include <algorithm>

#include "core/text/error.h"
#include "exporters/tflite/rules.h"

namespace miniqat::exporters {

using tflite_schema::Quantization;

namespace {

constexpr std::uint32_t kSchemaVersion = 3;
constexpr std::size_t kAlignment = 16;
/// Offsets in the file have 31 bits; the tables around the data take what is left below them.
constexpr std::size_t kLargestFile = (std::size_t{1} << 31) - (std::size_t{1} << 24);
constexpr std::int32_t kLargestByteKind = 127;

}  // namespace

// Parts are written one behind another, each by a statement of its own: within a call their order would be the
// compiler's.

// The first buffer is empty by the format's convention: tensors without data refer to it.
TfliteFile::TfliteFile() { buffers_.push_back(tflite_schema::CreateBuffer(builder_)); }

std::int32_t TfliteFile::add(const TfliteTensor& tensor, std::uint32_t buffer) {
  flatbuffers::Offset<Quantization> quantization;
  if (!tensor.scales.empty()) {
    const auto zero_points = builder_.CreateVector(tensor.zero_points);
    const auto scales = builder_.CreateVector(tensor.scales);
    quantization = tflite_schema::CreateQuantization(builder_, scales, zero_points, tensor.quantized_axis);
  }
  const auto name = builder_.CreateString(tensor.name);
  const auto shape = builder_.CreateVector(tensor.shape);
  tensors_.push_back(tflite_schema::CreateTensor(builder_, shape, tensor.type, buffer, name, quantization));
  return static_cast<std::int32_t>(tensors_.size()) - 1;
}

std::int32_t TfliteFile::add_constant(const TfliteTensor& tensor, std::span<const std::uint8_t> bytes) {
  if (builder_.GetSize() + bytes.size() > kLargestFile)
    fail("tflite: \"", tensor.name, "\" does not fit: a TensorFlow Lite file ends at 2 GiB");
  builder_.ForceVectorAlignment(bytes.size(), 1, kAlignment);
  buffers_.push_back(tflite_schema::CreateBuffer(builder_, builder_.CreateVector(bytes.data(), bytes.size())));
  return add(tensor, static_cast<std::uint32_t>(buffers_.size()) - 1);
}

std::int32_t TfliteFile::add_constant(const TfliteTensor& tensor, std::span<const std::int32_t> values) {
  std::vector<std::uint8_t> bytes(4 * values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    for (std::size_t byte = 0; byte < 4; ++byte)
      bytes[4 * i + byte] = static_cast<std::uint8_t>(static_cast<std::uint32_t>(values[i]) >> (8 * byte));
  return add_constant(tensor, std::span<const std::uint8_t>(bytes));
}

std::uint32_t TfliteFile::code(const TfliteOperator& op) {
  const auto [entry, is_new] =
      code_indices_.try_emplace({op.kind, op.version}, static_cast<std::uint32_t>(codes_.size()));
  if (is_new) {
    const auto byte = static_cast<std::int8_t>(std::min(static_cast<std::int32_t>(op.kind), kLargestByteKind));
    codes_.push_back(tflite_schema::CreateOperatorCode(builder_, byte, op.version, op.kind));
  }
  return entry->second;
}

void TfliteFile::add_operator(const TfliteOperator& op, const std::vector<std::int32_t>& inputs, std::int32_t output) {
  const auto outputs = builder_.CreateVector(std::vector{output});
  const auto read = builder_.CreateVector(inputs);
  const std::uint32_t index = code(op);
  operators_.push_back(tflite_schema::CreateOperator(builder_, index, read, outputs, op.options_type, op.options));
}

void TfliteFile::add_metadata(const std::string& name, const std::string& text) {
  const std::vector<std::uint8_t> bytes(text.begin(), text.end());
  buffers_.push_back(tflite_schema::CreateBuffer(builder_, builder_.CreateVector(bytes)));
  metadata_.push_back(tflite_schema::CreateMetadata(builder_, builder_.CreateString(name),
                                                    static_cast<std::uint32_t>(buffers_.size()) - 1));
}

std::string TfliteFile::finish(const std::string& name, std::int32_t input, std::int32_t output) {
  const auto title = builder_.CreateString(name);
  const auto operators = builder_.CreateVector(operators_);
  const auto outputs = builder_.CreateVector(std::vector{output});
  const auto inputs = builder_.CreateVector(std::vector{input});
  const auto tensors = builder_.CreateVector(tensors_);
  const auto graph = tflite_schema::CreateSubGraph(builder_, tensors, inputs, outputs, operators, title);
  const auto codes = builder_.CreateVector(codes_);
  const auto graphs = builder_.CreateVector(std::vector{graph});
  const auto description = builder_.CreateString("Written by miniqat from \"" + name + "\".");
  const auto buffers = builder_.CreateVector(buffers_);
  // A file without metadata has no list of them.
  const auto metadata = metadata_.empty() ? 0 : builder_.CreateVector(metadata_);
  tflite_schema::FinishModelBuffer(
      builder_, tflite_schema::CreateModel(builder_, kSchemaVersion, codes, graphs, description, buffers, metadata));
  return {reinterpret_cast<const char*>(builder_.GetBufferPointer()), builder_.GetSize()};
}

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
  return add_tensor(on_grid(info.name, tflite_shape(info.shape), info.grid));
}

std::int32_t TfliteGraph::add_float_tensor(const std::string& name, const Shape& shape) {
  return add_tensor({.name = name, .shape = tflite_shape(shape), .type = TensorType::FLOAT32});
}

std::int32_t TfliteGraph::add_integers(const std::string& name, const std::vector<std::int32_t>& shape,
                                       const std::vector<std::int32_t>& values) {
  return add_constant({.name = name, .shape = shape, .type = TensorType::INT32}, values);
}

std::int32_t TfliteGraph::add_scalar(const std::string& name, const Grid& grid, std::int32_t q) {
  return add_constant(on_grid(name, {1}, grid), std::vector{static_cast<std::uint8_t>(q - shift())});
}

std::int32_t TfliteGraph::clamped(const std::string& who, const TensorInfo& info, const Clamp& clamp, bool fuses,
                                  std::int32_t reach, const std::function<void(const TfliteTarget&)>& write) {
  const TfliteBounds bounds = tflite_bounds(info.grid, clamp, fuses, reach);
  if (bounds.at_most && info.grid.bits < 8)
    fail(
        "tflite: ", who, " writes \"", info.name, "\" of ", info.grid.bits,
        " bits, but TensorFlow Lite's activations have 8 bits and are clamped there; the formats miniqat, onnx, c, json and html hold it");
  const auto add = [&](bool last, const char* what) {
    return add_tensor({.name = last ? info.name : info.name + what, .shape = info.shape, .grid = info.grid});
  };
  std::int32_t tensor = add(!bounds.at_least && !bounds.at_most, "/unclamped");
  write({.tensor = tensor, .activation = bounds.activation});
  const auto add_bound = [&](OperatorKind kind, const char* name, std::int32_t q, std::int32_t output) {
    add_operator({.kind = kind, .version = version()}, {tensor, add_scalar(info.name + name, info.grid, q)}, output);
    tensor = output;
  };
  if (bounds.at_least) add_bound(OperatorKind::MAXIMUM, "/min", *bounds.at_least, add(!bounds.at_most, "/raised"));
  if (bounds.at_most) add_bound(OperatorKind::MINIMUM, "/max", *bounds.at_most, add(true, ""));
  return tensor;
}

void TfliteGraph::add_mul(std::int32_t a, std::int32_t b, bool grows, const TfliteTarget& target) {
  // The third version multiplies by 1 and more.
  add_operator({.kind = OperatorKind::MUL,
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
  add_operator({.kind = value ? OperatorKind::PADV2 : OperatorKind::PAD, .version = version()}, inputs, output);
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
  add_operator({.kind = OperatorKind::STRIDED_SLICE,
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
  const std::int32_t values = add_constant(on_grid(to.name + "/table", {size}, to.grid), bytes);
  // GATHER wants indices of 32 bits, from 0 on.
  const auto add_indices = [&](const char* what) {
    return add_tensor({.name = to.name + what, .shape = tflite_shape(shape), .type = TensorType::INT32});
  };
  std::int32_t indices = add_indices("/indices");
  add_operator({.kind = OperatorKind::CAST}, {tensor}, indices);
  if (is_signed_) {
    const std::int32_t raised = add_indices("/raised");
    add_operator({.kind = OperatorKind::ADD,
                  .options_type = Options::AddOptions,
                  .options = CreateAddOptions(builder(), tflite_schema::Activation::NONE).Union()},
                 {indices, add_integers(to.name + "/shift", {1}, {shift()})}, raised);
    indices = raised;
  }
  const std::int32_t output = add_tensor(to);
  add_operator({.kind = OperatorKind::GATHER, .version = version()}, {values, indices}, output);
  return output;
}

}  // namespace miniqat::exporters
