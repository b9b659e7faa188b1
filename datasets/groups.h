#pragma once

#include <span>
#include <string>
#include <vector>

#include "datasets/dataset.h"

namespace miniqat::datasets {

/// The group of each file: the first capture of an expression (ECMAScript) in its path or, without any, what it
/// matches. Throws Error for a wrong expression and names a file without a group.
std::vector<std::string> groups_of_files(const std::vector<std::string>& files, const std::string& expression);

/// A part with the names of its examples' groups.
struct GroupedPart {
  Dataset* part;
  const std::vector<std::string>* groups;
};

/// Numbers the groups of all parts in the order of their names, which it returns, and sets Dataset::groups. Throws
/// Error that names a group that stands in two parts.
std::vector<std::string> number_groups(std::span<const GroupedPart> parts);

/// Parts a data set without test examples: `test_groups` become these or, without any, the last of every six groups (of
/// each class, if no group has two). `names` are those of Dataset::groups. Throws Error for an unknown group, and when
/// one part would be empty.
Splits split_off_groups(const Dataset& all, const std::vector<std::string>& names,
                        const std::vector<std::string>& test_groups);

/// The class of each group, by its number; all 0 where there are no classes or a group has two. One for each number up
/// to the greatest.
std::vector<std::int32_t> classes_of_groups(const Dataset& dataset);

}  // namespace miniqat::datasets
