#pragma once

#include <cstdint>

#include "datasets/dataset.h"

namespace miniqat::datasets {

/// The splits with n of their training examples as the validation part: example i * size / n for i in 0..n-1, so spread
/// evenly and the same for every run. What is left for training, and the part, are copies in the data set's order; the
/// test examples are shared. Without any (n = 0) the splits as they are. Throws Error unless 0 <= n < size.
Splits hold_out(const Splits& splits, std::int64_t n);

/// Parts a data set that has no test pictures: the last of every six examples of each class become these. Throws Error
/// when no class has six.
Splits split_off_test(const Dataset& all);

}  // namespace miniqat::datasets
