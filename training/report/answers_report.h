#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "training/evaluate/answers.h"
#include "training/evaluate/evaluator.h"

namespace miniqat::training {

/// The class that a network chooses, -1 if a logit was NaN, and its score.
struct Choice {
  std::int64_t predicted = -1;
  double score = 0;
};

/// What a network answers for all pictures of a part of a data set.
struct NetworkAnswers {
  explicit NetworkAnswers(const datasets::Dataset& pictures) : answers(pictures) {}

  /// For evaluate() and evaluate_integers().
  void add(std::int64_t index, std::span<const float> logits);

  Evaluation evaluation = {};
  Answers answers;
  std::vector<Choice> choices = {};
};

/// A picture that one network gets right and another wrong.
struct LostPicture {
  /// In its part of the data set, from 0.
  std::int64_t index = 0;
  std::int32_t label = 0;
  Choice in_float;
  Choice in_integers;
  /// [height, width, channels]; the longer side has at most 64 pixels.
  std::int64_t height = 0, width = 0, channels = 0;
  /// Bytes in base64.
  std::string pixels = {};
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

/// Compares the answers of two networks. Keeps at most `most` of the lost pictures.
Comparison compare(const NetworkAnswers& first, const NetworkAnswers& second, const datasets::Dataset& pictures,
                   std::size_t most);

}  // namespace miniqat::training
