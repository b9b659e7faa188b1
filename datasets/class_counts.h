#pragma once

#include <cstdint>
#include <vector>

#include "datasets/dataset.h"

namespace miniqat::datasets {

/// The number of examples of each class.
std::vector<std::int64_t> class_counts(const Dataset& dataset);

}  // namespace miniqat::datasets
