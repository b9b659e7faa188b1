#pragma once

#include <cstdint>
#include <vector>

#include "datasets/dataset.h"
#include "training/run/run_source.h"

namespace miniqat::training {

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
