#pragma once

#include "datasets/dataset.h"
#include "datasets/number_options.h"

namespace miniqat::datasets {

/// Standardises the numbers and the targets of all parts as NumberOptions say, and notes with what. Targets that are
/// all 0 or 1 stay as they are, unless there is a standard for them. NaN, where a series was filled up, counts nowhere
/// and becomes 0: the mean of its channel, where numbers are standardised.
void standardise(Splits& splits, const NumberOptions& options);

}  // namespace miniqat::datasets
