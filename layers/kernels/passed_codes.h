#pragma once

#include <cstdint>

#include "core/kernels/packed.h"

namespace miniqat::layers {

// For ops that make bytes of bytes on the same grid (PassesPacked).

/// The form of so many bytes.
inline PackedForm passed_on(PackedForm form, std::int64_t elements) {
  form.elements = elements;
  form.needs_tensor = false;
  return form;
}

/// The only grid of bytes in that form.
inline CodeGrid grid_of_codes(const PackedForm& form, const Tensor& bytes) {
  return packed_tensor(form, bytes).grids[0];
}

/// When the codes of y are written, of those that were `read` in `form`: their grid, and y itself where it is
/// defined().
inline void finish_codes(const PackedForm& form, const Tensor& read, Tensor& written, Tensor& y) {
  const PackedForm passed = passed_on(form, y.shape().elements());
  packed_grids(passed, written)[0] = grid_of_codes(form, read);
  if (y.defined()) unpack(passed, written, y.data<float>());
}

}  // namespace miniqat::layers
