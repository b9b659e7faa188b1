#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "training/evaluate/evaluator.h"

namespace miniqat::training {

/// ", balanced 71.20%" where the classes are uneven, else "".
std::string balanced_text(const Evaluation& result);

/// Whether `a` is the better network: by right answers or, with `balanced`, by the balanced accuracy; among equals by
/// the loss. Both of the same pictures.
bool is_better(const Evaluation& a, const Evaluation& b, bool balanced);

/// What is measured of a run, for its summary.json.
struct Accuracies {
  /// None without a validation part.
  std::optional<Evaluation> validation = {};
  /// None before the end of a run with a validation part: nobody shall choose by the test pictures.
  std::optional<Evaluation> test = {};

  /// "validation accuracy 98.00% (98 of 100), test accuracy ...": those there are.
  std::string text() const;
  /// Sets "validation_accuracy", "validation_balanced_accuracy" and "validation_loss" where there is such a part, and
  /// the same of "test"; without its evaluation accuracy and loss are null.
  void put_into(nlohmann::ordered_json& summary) const;
  /// What put_into() has set, of parts of so many pictures; none unless both are there.
  static std::optional<Accuracies> from(const nlohmann::ordered_json& summary, std::int64_t validation,
                                        std::int64_t test);
};

}  // namespace miniqat::training
