#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/dataset.h"

namespace miniqat::datasets {

/// Which training examples become the validation part.
enum class HoldOut {
  /// Holds out as many of each class as its share of the training set; within a class those whose pictures have the
  /// lowest hash. So the part depends on the pictures alone, neither on their order nor on a seed, and a smaller part
  /// of the same data lies within a greater one, but for the rounding of shares.
  kByClass,
  /// Example i * size / n for i in 0..n-1, whatever its label: classes in turns may all but vanish from the part. Runs
  /// of versions without this choice have it.
  kStride,
};
/// "class", "stride".
std::span<const std::string_view> names_of(HoldOut);

/// The splits with n of their training examples as the validation part. What is left for training, and the part, are
/// copies in the data set's order; the test examples are shared. Without any (n = 0) the splits as they are. Where
/// examples have groups, whole groups are held out, by their hashes whatever the method: as many as come nearest to n
/// examples, but one at least and not all; of each class its share, if no group has two classes. Throws Error unless
/// 0 <= n < size, and if there is one group only.
Splits hold_out(const Splits& splits, std::int64_t n, HoldOut method = HoldOut::kByClass);

/// "a (3 training pictures), b (1)": the classes of which `held` has no picture although `left`, the training part
/// beside it, has some, the first few. "" without any.
std::string classes_too_small(const Dataset& held, const Dataset& left);

/// Parts a data set that has no test examples: the last of every six examples of each class, if there are classes,
/// become these. Where examples have groups: the last of every six groups in the order of their numbers, of each class
/// if no group has two classes; or the groups with these names. Throws Error when no class has six, for an unknown
/// group, and when all groups are test groups.
Splits split_off_test(const Dataset& all, const std::vector<std::string>& test_groups = {});

}  // namespace miniqat::datasets
