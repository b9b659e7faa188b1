#pragma once

#include <string>

#include "training/evaluate/answers.h"

namespace miniqat::cli {

/// Up to this number of classes the whole confusion matrix is shown.
inline constexpr std::int64_t kMostMatrixClasses = 20;

/// Accuracy by class with the confusion matrix; of more classes, the worst of them and the most frequent confusions.
std::string class_table(const training::Answers& answers);

/// A line for each picture whose class was not chosen.
std::string wrong_table(const training::Answers& answers);

}  // namespace miniqat::cli
