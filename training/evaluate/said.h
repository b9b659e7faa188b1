#pragma once

#include <vector>

#include "datasets/dataset.h"
#include "training/evaluate/evaluator.h"
#include "training/run/asked_pictures.h"
#include "training/task/task.h"

namespace miniqat::training {

/// What a network says of something that was asked for, given what it says of each example (predict()): of a sound the
/// class by the mean scores of its windows; of other tasks than classes the outputs for the first of them.
Prediction said_of(const AskedPicture& asked, const std::vector<Prediction>& predictions);

/// What the outputs mean where the task is none of classes, as the mean over the windows of a sound: the probability of
/// each label, the mean squared error of a reconstruction, or the outputs themselves. `data` has the examples.
std::vector<double> answers_to(const Task& task, const datasets::Dataset& data, const AskedPicture& asked,
                               const std::vector<Prediction>& predictions);

}  // namespace miniqat::training
