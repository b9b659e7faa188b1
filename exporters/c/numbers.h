#pragma once

#include <cstdint>
#include <string>

#include "integer/model.h"

namespace miniqat::exporters {

// Not for users of the library: what generated C has for numbers, between the units of the data and the model's
// integers. "" where the model has no standards. `with_input`: whether the caller makes the input of numbers.

/// For the header: means and deviations, PREFIX_quantize() and PREFIX_dequantize(). `macro`: the prefix in capitals.
std::string c_declarations_of_numbers(const integer::Model& model, const std::string& prefix, const std::string& macro,
                                      bool with_input);

std::string c_source_of_numbers(const integer::Model& model, const std::string& prefix, const std::string& macro,
                                bool with_input);

/// Bytes of its constants.
std::int64_t c_constants_of_numbers(const integer::Model& model, bool with_input);

}  // namespace miniqat::exporters
