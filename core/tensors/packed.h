#pragma once

#include <cstdint>
#include <span>

#include "core/tensors/tensor.h"

namespace miniqat {

/// A grid of which a byte names a place: real = (code - zero_point) * scale, codes being the integers of the quantizer.
struct CodeGrid {
  float scale = 1;
  float zero_point = 0;
};

/// The smaller form of a float32 tensor whose numbers lie on grids of at most 256 places: a byte for each element, then
/// the grids.
struct PackedForm {
  std::int64_t elements = 0;
  /// Element i has grid i % grids.
  std::int64_t grids = 1;
  /// A code less its grid's zero point is in lowest..highest, whatever the grid.
  int lowest = 0;
  int highest = 0;
  /// Half of the number of codes, 2^(bits - 1).
  int middle = 0;
  /// The op writes the tensor in any case, and packs it then.
  bool needs_tensor = false;

  /// uint8, [the bytes that both take].
  TensorSpec spec() const;
};

/// A packed tensor's parts.
struct PackedTensor {
  const std::uint8_t* codes = nullptr;
  std::span<const CodeGrid> grids;
};

/// `bytes` has form.spec().
PackedTensor packed_tensor(const PackedForm& form, const Tensor& bytes);
/// The grids of that tensor, to be written.
std::span<CodeGrid> packed_grids(const PackedForm& form, Tensor& bytes);

}  // namespace miniqat
