#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/engine/session.h"
#include "datasets/dataset.h"
#include "integer/model.h"
#include "training/figures.h"
#include "training/model_source.h"
#include "training/run/run_source.h"

namespace miniqat::training {

/// The softmax of logits, in double: scores between 0 and 1 that add up to 1. All are NaN if a logit is.
std::vector<double> class_scores(std::span<const float> logits);

/// -log of the label's score, in double and without overflow. NaN if a logit is.
double cross_entropy(std::span<const float> logits, std::int64_t label);

/// How often a class was the label, the answer, and both.
struct ClassHits {
  std::int64_t labels = 0;
  std::int64_t answers = 0;
  std::int64_t correct = 0;
};

struct Evaluation : Hits {
  /// Mean cross entropy.
  double loss = 0;
  /// For each class; empty where only a summary of an evaluation is known.
  std::vector<ClassHits> by_class = {};
  /// The mean over the classes that have examples of the share that was answered rightly (Brodersen et al. 2010). None
  /// where it is not known, in summaries of earlier versions.
  std::optional<double> balanced_accuracy = {};

  /// One more example with its logits. Ties go to the lower class; a NaN among them counts as wrong. Until finish(),
  /// `loss` is the sum, and there is no balanced accuracy.
  void count(std::span<const float> logits, std::int32_t label);
  void finish();
  /// Whether the most frequent class has more than twice the examples of the rarest that has any, so that accuracy says
  /// little of the rare ones.
  bool has_uneven_classes() const;
};

/// Given each picture of a data set, in order, with its logits.
using OnLogits = std::function<void(std::int64_t index, std::span<const float> logits)>;

/// Runs a classifier over a whole data set in batches of its own size. Ties between logits go to the lower class; a
/// picture whose logits hold a NaN counts as wrong. A profile gets a step for each batch.
Evaluation evaluate(Session& session, const Classifier& classifier, const datasets::Dataset& dataset,
                    const OnLogits& on_logits = {}, Profile* profile = nullptr);

/// Runs an integer classifier over a whole data set. The loss is that of the dequantized logits. Ties between logits,
/// which are frequent among integers, go to the lower class, as in evaluate(). `on_logits` is given the dequantized
/// ones.
Evaluation evaluate_integers(const integer::Model& model, const datasets::Dataset& dataset,
                             const OnLogits& on_logits = {});

/// What a network says of one picture.
struct Prediction {
  /// The class with the highest score; -1 if a logit was NaN.
  std::int64_t predicted = -1;
  /// One for each class (class_scores()).
  std::vector<double> scores;

  /// The classes by their scores, the highest first; of equal ones the lower class.
  std::vector<std::int64_t> ranking() const;
};

/// One for each picture, by the run's evaluation graph or, with `integer`, by its integer model. Labels do not matter.
/// Throws Error for pictures that do not fit the network and, with `integer`, for a run that has no integer model.
std::vector<Prediction> predict(const RunSource& run, const datasets::Dataset& pictures, bool integer);

}  // namespace miniqat::training
