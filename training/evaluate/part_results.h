#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "datasets/dataset.h"
#include "training/evaluate/evaluator.h"

namespace miniqat::training {

/// What is measured of a run, for its summary.json.
struct PartResults {
  /// None without a validation part.
  std::optional<Evaluation> validation = {};
  /// None before the end of a run with a validation part: nobody shall choose by the test pictures.
  std::optional<Evaluation> test = {};

  /// "validation accuracy 98.00% (98 of 100), test accuracy ...": those there are.
  std::string text() const;
  /// Sets "validation_accuracy", "validation_balanced_accuracy" and "validation_loss", or what else the task measures,
  /// where there is such a part, and the same of "test"; without its evaluation the first and the loss are null.
  void put_into(nlohmann::ordered_json& summary, const Task& task) const;
  /// What put_into() has set, of parts of so many examples; none unless both are there.
  static std::optional<PartResults> from(const nlohmann::ordered_json& summary, const Task& task,
                                         std::int64_t validation, std::int64_t test);
};

/// A class that a network answers almost always, although the labels are others.
struct OneAnswer {
  std::int64_t number = 0;
  /// Shares of the class, 0 to 1.
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
