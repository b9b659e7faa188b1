#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "datasets/dataset.h"
#include "training/evaluate/answers.h"
#include "training/evaluate/evaluator.h"
#include "training/task/task.h"

namespace miniqat::training {

/// The class that a network chooses, -1 if a logit was NaN, and its score.
struct Choice {
  std::int64_t predicted = -1;
  double score = 0;
};

/// What a network answers for all examples of a part of a data set.
struct NetworkAnswers {
  explicit NetworkAnswers(const datasets::Dataset& examples, const Task& task = classification());

  /// For evaluate() and evaluate_integers().
  void add(std::int64_t index, std::span<const float> given);

  Evaluation evaluation = {};
  /// The answers by class; none where the task is another.
  std::optional<Answers> answers = {};
  std::vector<Choice> choices = {};
  /// [examples, n], what the network gave, where it gives a few numbers for targets; empty for other tasks.
  std::vector<float> given = {};
  /// The examples of the greatest loss, that one first, and for `reconstruct` what the network gave for each.
  std::vector<std::int64_t> worst = {};
  std::vector<std::vector<float>> given_for_worst = {};

 private:
  bool has_targets_ = false;
};

/// A picture that one network gets right and another wrong.
struct LostPicture {
  /// In its part of the data set, from 0.
  std::int64_t index = 0;
  std::int32_t label = 0;
  Choice in_float;
  Choice in_integers;
  /// draw_example()
  nlohmann::ordered_json drawing = {};
};

/// Two networks on the same pictures.
struct Comparison {
  std::int64_t both_right = 0;
  std::int64_t only_first_right = 0;
  std::int64_t only_second_right = 0;
  std::int64_t both_wrong = 0;
  std::int64_t same_class = 0;
  /// The first right and the second wrong, the most certain mistakes first.
  std::vector<LostPicture> lost = {};
};

/// Compares the answers of two networks for classes. Keeps at most `most` of the lost pictures.
Comparison compare(const NetworkAnswers& first, const NetworkAnswers& second, const datasets::Dataset& pictures,
                   std::size_t most);

/// The examples of the greatest loss, at most `most` of them, the worst first; a NaN is worse than any number, and of
/// equal ones the first comes first.
std::vector<std::int64_t> worst_examples(const Evaluation& evaluation, std::size_t most);

}  // namespace miniqat::training
