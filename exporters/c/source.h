#pragma once

#include <optional>
#include <string>

#include "core/tensor.h"
#include "integer/model.h"

namespace miniqat::exporters {

/// A header and a source in C99 that need nothing but the compiler.
struct CSource {
  std::string header;
  std::string source;
};

/// The model as C: weights as constant arrays, packed below 8 bits, activations in one static arena, no heap, no
/// floating point. `int <prefix>_run(const uint8_t* input, uint8_t* output)` gives the same integers as
/// integer/reference. `images` [n, ...] uint8 become test vectors with the integers expected of them, checked by `int
/// <prefix>_self_test(void)`, 0 when all agree. `header_name` is what the source includes. If `bytes`, the grid of the
/// pictures' bytes, is not the input's, `const uint8_t <prefix>_input_from_byte[256]` maps them to it. Throws Error for
/// a prefix that is no C identifier.
CSource c_source(const integer::Model& model, const std::string& prefix, const std::string& header_name,
                 const Tensor& images, const std::optional<integer::Grid>& bytes = {});

}  // namespace miniqat::exporters
