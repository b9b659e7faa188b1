#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "exporters/tflite/tflite_generated.h"
#include "integer/model.h"

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

/// The output of an operator, and its fused activation.
struct TfliteTarget {
  std::int32_t tensor = 0;
  tflite_schema::Activation activation = tflite_schema::Activation::NONE;
};

/// A TensorFlow Lite graph of integers, uint8 or int8 throughout: integer::Model's tensors and what takes several of
/// the format's operators. Everything has a batch of 1 in front, which runtimes may resize. Methods return indices of
/// tensors. `who` is the operation in messages: [Add "block1/Add"].
class TfliteGraph : public TfliteFile {
 public:
  explicit TfliteGraph(bool is_signed)
      : is_signed_(is_signed), type_(is_signed ? tflite_schema::TensorType::INT8 : tflite_schema::TensorType::UINT8) {}

  bool is_signed() const { return is_signed_; }
  tflite_schema::TensorType type() const { return type_; }
  /// The version of an operator that knows uint8 since its first version and int8 since its second, as most do.
  std::int32_t version() const { return is_signed_ ? 2 : 1; }

  using TfliteFile::add_tensor;
  std::int32_t add_tensor(const integer::TensorInfo& info);
  std::int32_t add_float_tensor(const std::string& name, const Shape& shape);
  std::int32_t add_integers(const std::string& name, const std::vector<std::int32_t>& shape,
                            const std::vector<std::int32_t>& values);

  /// Adds an operator by write(target), whose output, a tensor like `info`, comes to lie within `clamp`: by what it
  /// fuses, if it `fuses` anything, and by operators behind it. By itself it writes integers up to `reach`. Throws
  /// Error when `info` has fewer than 8 bits and nothing fused keeps it there.
  std::int32_t clamped(const std::string& who, const integer::TensorInfo& info, const integer::Clamp& clamp, bool fuses,
                       std::int32_t reach, const std::function<void(const TfliteTarget&)>& write);

  /// A product of two tensors, of which the second may have one element.
  void add_mul(std::int32_t a, std::int32_t b, bool grows, const TfliteTarget& target);

  /// `tensor`, on the grid `from`, on that of `to`. Throws what clamped() throws.
  std::int32_t rescaled(const std::string& who, std::int32_t tensor, const integer::Grid& from,
                        const integer::TensorInfo& to, const integer::Clamp& clamp);

  /// `tensor` with borders, before and after for each axis of an example: of `value`, or of its zero point.
  std::int32_t padded(std::int32_t tensor, const std::vector<std::array<std::int64_t, 2>>& paddings,
                      const integer::TensorInfo& to, std::optional<std::int32_t> value);

  /// The part of `tensor` that the slice keeps, of the shape of `to`. Throws Error for more axes than the format has.
  std::int32_t sliced(const std::string& who, std::int32_t tensor, const integer::Slice& slice,
                      const integer::TensorInfo& to);

  /// table[q] for each integer q of `tensor`, of that shape, as ours count them.
  std::int32_t looked_up(std::int32_t tensor, const Shape& shape, const std::vector<std::uint8_t>& table,
                         const integer::TensorInfo& to);

 private:
  TfliteTensor on_grid(const std::string& name, std::vector<std::int32_t> shape, const integer::Grid& grid) const;
  /// One integer of a grid, for all places of a tensor.
  std::int32_t add_scalar(const std::string& name, const integer::Grid& grid, std::int32_t q);
  /// How far the file's integers lie below the model's.
  std::int32_t shift() const { return is_signed_ ? 128 : 0; }

  bool is_signed_;
  tflite_schema::TensorType type_;
};

/// [1, extents...]
std::vector<std::int32_t> tflite_shape(const Shape& example);

}  // namespace miniqat::exporters
