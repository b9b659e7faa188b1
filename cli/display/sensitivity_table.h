#pragma once

#include <cstddef>
#include <string>

#include "training/quantize/sensitivity.h"

namespace miniqat::cli {

/// A line for each layer, weights or activations, and width: those first that raise the loss most. At most `rows` of
/// them, 0: all.
std::string sensitivity_table(const training::Sensitivity& sensitivity, std::size_t rows);

/// The float network, and all quantizers of layers at once.
std::string together_table(const training::Sensitivity& sensitivity);

/// The cost of the chosen widths, predicted and measured, and what else keeps to the budget.
std::string choice_text(const training::Sensitivity& sensitivity);

}  // namespace miniqat::cli
