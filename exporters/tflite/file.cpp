#include "exporters/tflite/file.h"

#include <algorithm>

#include "core/text/error.h"

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

}  // namespace miniqat::exporters
