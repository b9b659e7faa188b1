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

/// Classes are linked by their names while they are read. Numbers and labels of data may be called otherwise than a
/// network's outputs, but those of the same names lie in the same order: throws Error that names `source`, the
/// network's, if they do not.
void require_order_of(const std::vector<std::string>& outputs, const Task& task, const datasets::Dataset& data,
                      const std::string& source);

}  // namespace miniqat::training
