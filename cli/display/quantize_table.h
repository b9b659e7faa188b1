#pragma once

#include <string>

#include "training/quantize/quantization_run.h"

namespace miniqat::cli {

/// A line for each network: accuracy on the validation part and on the test pictures, bytes of parameters, bit
/// operations. An asterisk marks the one that became the run.
std::string quantize_table(const training::QuantizationResult& result);

/// The network of the run, and the reason: "the run holds the trained network, the best on the validation part". Also
/// the reason for missing integers.
std::string quantize_conclusion(const training::QuantizationResult& result);

}  // namespace miniqat::cli
