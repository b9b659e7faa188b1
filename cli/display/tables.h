#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "quantize/calibrate/calibrate.h"
#include "quantize/quantizers.h"
#include "training/evaluate/answers.h"
#include "training/quantize/quantization_run.h"
#include "training/quantize/sensitivity.h"

namespace miniqat::cli {

/// Up to this number of classes the whole confusion matrix is shown.
inline constexpr std::int64_t kMostMatrixClasses = 20;

/// Accuracy by class with the confusion matrix; of more classes, the worst of them and the most frequent confusions.
std::string class_table(const training::Answers& answers);

/// A line for each picture whose class was not chosen.
std::string wrong_table(const training::Answers& answers);

/// A line for each number that is predicted: its name, R^2, and its mean absolute error in the unit of the data.
std::string target_table(const training::Evaluation& evaluation, const datasets::Dataset& data);

/// A line for each quantizer: its name, what it is, the values seen and the range set; for one range a channel, the
/// lowest and the highest of the ends.
std::string range_table(std::span<const quantize::CalibratedRange> ranges);

/// A line for each quantizer: its name, what it is, its range, and scale and zero point of the grid; for one range a
/// channel, the lowest and the highest of each.
std::string quantizer_table(std::span<const quantize::QuantizerRange> ranges);

/// A line for each network: accuracy on the validation part and on the test pictures, bytes of parameters, bit
/// operations. An asterisk marks the one that became the run.
std::string quantize_table(const training::QuantizationResult& result);

/// The network of the run, and the reason: "the run holds the trained network, the best on the validation part". Also
/// the reason for missing integers.
std::string quantize_conclusion(const training::QuantizationResult& result);

/// A line for each layer, weights or activations, and width: those first that raise the loss most, a NaN
/// last. At most `rows` of them, 0: all.
std::string sensitivity_table(const training::Sensitivity& sensitivity, std::size_t rows);

/// The float network, and all quantizers of layers at once.
std::string together_table(const training::Sensitivity& sensitivity);

/// The cost of the chosen widths, predicted and measured, and what else keeps to the budget.
std::string choice_text(const training::Sensitivity& sensitivity);

}  // namespace miniqat::cli
