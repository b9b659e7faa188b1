#pragma once

#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "training/run/run_directory.h"
#include "training/task/task.h"

namespace miniqat::training {

/// The names of what a run's outputs stand for, as it records them: of classes, labels or numbers to predict. Empty
/// without a record or names.
std::vector<std::string> recorded_output_names(const RunDirectory& run, const Task& task);

/// The names that data give, for an integer model.
std::vector<std::string> output_names(const datasets::Dataset& data, const Task& task);

}  // namespace miniqat::training
