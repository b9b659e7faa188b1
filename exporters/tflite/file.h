#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "exporters/tflite/tflite_generated.h"

namespace miniqat::exporters {

/// A tensor of a TensorFlow Lite file.
struct TfliteTensor {
  std::string name;
  std::vector<std::int32_t> shape;
  tflite_schema::TensorType type = tflite_schema::TensorType::UINT8;
  /// None for a tensor of plain numbers, one of each, or one of each for every index along `quantized_axis`.
  std::vector<float> scales = {};
  std::vector<std::int64_t> zero_points = {};
  std::int32_t quantized_axis = 0;
};

/// The kind of an operator; the version is that of the format's history in which its types came up.
struct TfliteOperator {
  tflite_schema::OperatorKind kind;
  std::int32_t version = 1;
  tflite_schema::Options options_type = tflite_schema::Options::NONE;
  flatbuffers::Offset<void> options = {};
};

/// A TensorFlow Lite file in the making: one subgraph, whose tensors and operators are added one by one.
class TfliteFile {
 public:
  TfliteFile();

  /// For the options of an operator.
  flatbuffers::FlatBufferBuilder& builder() { return builder_; }

  /// A tensor that an operator or the caller fills. Returns its index.
  std::int32_t add_tensor(const TfliteTensor& tensor) { return add(tensor, 0); }
  /// A tensor that the file holds. Throws Error when the file would grow beyond the 2 GiB of its format.
  std::int32_t add_constant(const TfliteTensor& tensor, std::span<const std::uint8_t> bytes);
  std::int32_t add_constant(const TfliteTensor& tensor, std::span<const std::int32_t> values);

  /// Operators run in the order in which they are added.
  void add_operator(const TfliteOperator& op, const std::vector<std::int32_t>& inputs, std::int32_t output);

  /// Text that interpreters leave alone.
  void add_metadata(const std::string& name, const std::string& text);

  /// The file's bytes. Call once.
  std::string finish(const std::string& name, std::int32_t input, std::int32_t output);

 private:
  std::int32_t add(const TfliteTensor& tensor, std::uint32_t buffer);
  std::uint32_t code(const TfliteOperator& op);

  flatbuffers::FlatBufferBuilder builder_;
  std::vector<flatbuffers::Offset<tflite_schema::Buffer>> buffers_;
  std::vector<flatbuffers::Offset<tflite_schema::Metadata>> metadata_;
  std::vector<flatbuffers::Offset<tflite_schema::Tensor>> tensors_;
  std::vector<flatbuffers::Offset<tflite_schema::Operator>> operators_;
  std::vector<flatbuffers::Offset<tflite_schema::OperatorCode>> codes_;
  /// Indices into codes_ by kind and version.
  std::map<std::pair<tflite_schema::OperatorKind, std::int32_t>, std::uint32_t> code_indices_;
};

}  // namespace miniqat::exporters
