#pragma once

#include <string>

#include "training/quantize/quantization_run.h"

namespace miniqat::cli {

/// A line for each network: accuracy on the validation part and on the test pictures, bytes of parameters, bit
/// operations. An asterisk marks the one that became the run.
std::string quantize_table(const training::QuantizationResult& result);

/// What the run holds, and why: "the run holds the trained network, the best on the validation part", and why there are
/// no integers, where there are none.
std::string quantize_conclusion(const training::QuantizationResult& result);

}  // namespace miniqat::cli
