#pragma once

#include <optional>
#include <string>

#include "datasets/dataset.h"
#include "training/evaluate/evaluator.h"

namespace miniqat::training {

/// A class that a network answers almost always, although the labels are others.
struct OneAnswer {
  std::int64_t number = 0;
  /// The class's shares of the answers and of the labels, 0 to 1.
  double of_answers = 0, of_labels = 0;
};

/// The class that has at least 90% of the answers, but less than 75% of the labels; none without such a class, and of
/// fewer than 50 pictures. A network that has learned nothing, or whose pictures have other values than in its
/// training, answers so, and its accuracy, the share of that class, looks like a result.
std::optional<OneAnswer> one_answer(const Evaluation& evaluation);

/// "warning: `subject` answers cat for 97.50% of the pictures, of which 68.18% are that: ..." with advice, where there
/// is such a class; "" where not. `dataset`: the name or path of the data set, whose own files have --mean and --std;
/// these flags are refused beside a data set with a name.
std::string warning_of_one_answer(const Evaluation& evaluation, const datasets::Dataset& pictures,
                                  const std::string& subject, const std::string& dataset);

/// The warning before the first step of a network that comes with its weights: warning_of_one_answer(), or that its
/// loss is far above that of guessing, or "".
std::string warning_before_training(const Evaluation& evaluation, const datasets::Dataset& pictures,
                                    const std::string& subject, const std::string& dataset);

}  // namespace miniqat::training
