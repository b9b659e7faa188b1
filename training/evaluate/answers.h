#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "datasets/dataset.h"
#include "training/figures.h"

namespace miniqat::training {

/// A picture whose class was not chosen.
struct WrongAnswer {
  /// In the data set, from 0.
  std::int64_t index = 0;
  std::int32_t label = 0;
  /// -1, and the score NaN, if a logit was NaN.
  std::int64_t predicted = 0;
  /// The predicted class's score, 0 to 1 (class_scores()).
  double score = 0;
  /// Dataset::file_of().
  std::string file = {};
};

/// What a network answered for each picture of a data set: the confusion matrix and the mistakes.
class Answers {
 public:
  explicit Answers(const datasets::Dataset& pictures);

  /// The answer for one picture; logits: one for each class. Ties go to the lower class.
  void add(std::int64_t index, std::span<const float> logits);

  /// Dataset::noun()
  const std::string& noun() const { return noun_; }
  std::int64_t classes() const { return static_cast<std::int64_t>(names_.size()); }
  /// What the class is called (Dataset::class_name()).
  const std::string& name(std::int64_t number) const { return names_[static_cast<std::size_t>(number)]; }
  /// How many pictures of class `label` were taken for `predicted`; -1: for none, because of a NaN.
  std::int64_t count(std::int64_t label, std::int64_t predicted) const;
  /// All counts but zeros, by {label, predicted}.
  const std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t>& counts() const { return counts_; }
  /// The hits among the pictures with this label.
  const Hits& of_class(std::int64_t label) const { return by_class_[static_cast<std::size_t>(label)]; }
  /// Pictures without a predicted class.
  std::int64_t undecided() const { return undecided_; }
  /// The share of pictures whose label is among the five highest logits (top_k_accuracy()); a NaN counts as wrong. None
  /// of ten classes and fewer, of which five are half.
  std::optional<double> top_five() const;
  /// In the order of the pictures.
  const std::vector<WrongAnswer>& wrong() const { return wrong_; }

  /// [{"class", "examples", "correct", "accuracy"}], by label; the accuracy of a class without pictures is null.
  nlohmann::ordered_json classes_json() const;
  /// A row for each label, a column for each predicted class.
  nlohmann::ordered_json confusion_json() const;
  /// [{"index", "label", "predicted", "score", "file"}]; "predicted" and "score" are null if a logit was NaN, and
  /// "file" is left out where pictures are no files.
  nlohmann::ordered_json wrong_json() const;

 private:
  bool has_many_classes() const { return classes() > 10; }

  std::string noun_;
  Tensor labels_;
  std::shared_ptr<const std::vector<std::string>> files_;
  std::vector<std::string> names_;
  std::vector<Hits> by_class_;
  /// A matrix would be mostly zeros where there are thousands of classes.
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> counts_;
  std::int64_t undecided_ = 0;
  std::int64_t in_top_five_ = 0;
  std::vector<WrongAnswer> wrong_;
};

}  // namespace miniqat::training
