#include "core/tensors/coded.h"

#include <cmath>
#include <cstring>

#include "core/text/error.h"

namespace miniqat {

CodedTensor CodedTensor::clone() const {
  CodedTensor copy = Tensor::clone();
  copy.grid = grid;
  return copy;
}

CodedTensor CodedTensor::slice(std::int64_t first, const Shape& shape) const {
  CodedTensor part = Tensor::slice(first, shape);
  part.grid = grid;
  return part;
}

Tensor numbers_of(const CodedTensor& tensor) {
  if (!tensor.grid) return tensor;
  Tensor numbers(tensor.shape());
  const auto* codes = tensor.data<std::uint8_t>();
  float* values = numbers.data<float>();
  for (std::int64_t i = 0; i < numbers.elements(); ++i)
    values[i] = (static_cast<float>(codes[i]) - tensor.grid->zero_point) * tensor.grid->scale;
  return numbers;
}

void require_byte_grid(const CodeGrid& grid) {
  const auto [scale, zero_point] = grid;
  if (!(scale > 0 && std::isfinite(scale))) fail("the scale of bytes must be positive and finite, is ", scale);
  if (!(zero_point >= 0 && zero_point <= 255 && zero_point == std::floor(zero_point)))
    fail("the zero point of bytes must be a byte, 0 to 255, is ", zero_point);
}

PackedForm form_of_bytes(std::int64_t elements) { return {.elements = elements, .lowest = -255, .highest = 255}; }

void pack_bytes(const CodedTensor& bytes, Tensor& packed) {
  std::memcpy(packed.raw(), bytes.raw(), bytes.bytes());
  packed_grids(form_of_bytes(bytes.elements()), packed)[0] = *bytes.grid;
}

}  // namespace miniqat
