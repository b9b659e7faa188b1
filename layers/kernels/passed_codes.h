#pragma once

#include <cstdint>

#include "core/graph/op.h"
#include "core/kernels/packed.h"

namespace miniqat::layers {

// For ops that make bytes of bytes on the same grid (PassesPacked).

/// The form of so many bytes.
inline PackedForm passed_on(PackedForm form, std::int64_t elements) {
  form.elements = elements;
  form.needs_tensor = false;
  return form;
}

/// The bytes of input 0, which forward reads.
inline const std::uint8_t* codes_read(const ForwardContext& context) {
  return context.packed_inputs[0]->data<std::uint8_t>();
}

/// The input's only grid.
inline CodeGrid grid_read(const ForwardContext& context) {
  return packed_tensor(context.packed_forms[0], *context.packed_inputs[0]).grids[0];
}

/// When the bytes of output 0 are written: their grid, and the numbers where somebody reads these.
inline void finish_codes(const ForwardContext& context) {
  Tensor& y = context.output(0);
  const PackedForm form = passed_on(context.packed_forms[0], y.shape().elements());
  packed_grids(form, *context.packed)[0] = grid_read(context);
  if (y.defined()) unpack(form, *context.packed, y.data<float>());
}

}  // namespace miniqat::layers
