#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "datasets/dataset.h"

namespace miniqat::datasets {

/// The group of each file: the first capture of an expression (ECMAScript) in its path or, without any, what it
/// matches. Throws Error for a wrong expression and names a file without a group.
std::vector<std::string> groups_of_files(const std::vector<std::string>& files, const std::string& expression);

/// How many captures the expression has. Throws Error for a wrong one.
std::size_t captures_of(const std::string& expression);
/// The class of files whose paths have none.
inline constexpr const char* kOtherClass = "other";

/// The class of each file, found as a group is. One word against all others: where the expression matches without a
/// capture, as "^(marvin)/|$" does in "sheila/1.wav", the class is kOtherClass. Throws Error for a wrong
/// expression and names a file without a class.
std::vector<std::string> classes_of_files(const std::vector<std::string>& files, const std::string& expression);

/// A part with the names of its examples' groups.
struct GroupedPart {
  Dataset* part;
  const std::vector<std::string>* groups;
};

/// Numbers the groups of all parts in the order of their names, and sets Dataset::groups and their names. Throws Error
/// that names a group that stands in two parts.
void number_groups(std::span<const GroupedPart> parts);

/// What split_off_test() (hold_out.h) does with groups.
Splits split_off_groups(const Dataset& all, const std::vector<std::string>& test_groups);

/// The class of each group, by its number; all 0 where there are no classes or a group has two. -1 for a number below
/// the greatest that no group has.
std::vector<std::int32_t> classes_of_groups(const Dataset& dataset);

}  // namespace miniqat::datasets
