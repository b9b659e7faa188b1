#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/tensors/tensor.h"
#include "exporters/c/front_end.h"
#include "integer/model.h"

namespace miniqat::exporters {

/// Bytes of static memory that generated C takes on a processor of 32 bits, without its code, the stack, the caller's
/// input and output, and the self test.
struct CFootprint {
  std::int64_t weights = 0;
  /// Biases, multipliers, tables, structs.
  std::int64_t constants = 0;
  /// The activations.
  std::int64_t arena = 0;
  /// Unpacked weights and sums of one operation, and what the front end of sounds works in.
  std::int64_t scratch = 0;
};

/// A header and a source in C99 that need nothing but the compiler.
struct CSource {
  std::string header;
  std::string source;
  CFootprint footprint;
};

/// The model as C: weights as constant arrays, packed below 8 bits, activations in one static arena, no heap, no
/// floating point. `int <prefix>_run(const uint8_t* input, uint8_t* output)` gives the same integers as
/// integer/reference, and returns the class; of another task than classes it returns nothing. Of a model with standards
/// `void <prefix>_quantize(const float* x, uint8_t* input)` and `void <prefix>_dequantize(const uint8_t* output, float*
/// y)` go between numbers in the units of the data and the integers, in floating point. With a front end,
/// `<prefix>_run_sound(const int16_t* samples, uint8_t* output)` and its parts take the place of the former
/// (front_end.h). `images` [n, ...] uint8 become test vectors with the integers expected of them, checked by `int
/// <prefix>_self_test(void)`, 0 when all agree. `header_name` is what the source includes. If `bytes`, the grid of the
/// pictures' bytes, is not the input's, `const uint8_t <prefix>_input_from_byte[256]` maps them to it. The macro
/// <PREFIX>_WEIGHTS_SECTION, empty by default, stands before each array of weights. `accuracy` is a line for the first
/// comment of the header, behind miniqat's version. Throws Error for a prefix that is no C identifier, and what
/// FixedFrontEnd throws.
CSource c_source(const integer::Model& model, const std::string& prefix, const std::string& header_name,
                 const Tensor& images, const std::optional<integer::Grid>& bytes = {}, const std::string& accuracy = {},
                 const std::optional<CFrontEnd>& front_end = {});

}  // namespace miniqat::exporters
