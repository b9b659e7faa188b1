#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "core/tensors/packed.h"

namespace miniqat {

/// A tensor, or in its place bytes that stand for the float32 numbers of a grid: it then means these numbers.
struct CodedTensor : Tensor {
  CodedTensor() = default;
  CodedTensor(Tensor tensor) : Tensor(std::move(tensor)) {}
  /// `codes`: uint8. Who takes it checks the grid (require_byte_grid()).
  CodedTensor(Tensor codes, const CodeGrid& of) : Tensor(std::move(codes)), grid(of) {}

  /// Where bytes stand for numbers.
  std::optional<CodeGrid> grid;

  // Like Tensor's functions; the grid stays.
  CodedTensor clone() const;
  CodedTensor slice(std::int64_t first, const Shape& shape) const;
};

/// The numbers that bytes stand for; without a grid the tensor itself, shared.
Tensor numbers_of(const CodedTensor& tensor);

/// Throws Error unless the scale is positive and finite, and the zero point a byte.
void require_byte_grid(const CodeGrid& grid);

/// The packed form of bytes on one grid, of which nothing else is known.
PackedForm form_of_bytes(std::int64_t elements);
/// Copies bytes with their grid into a tensor of that form.
void pack_bytes(const CodedTensor& bytes, Tensor& packed);

}  // namespace miniqat
