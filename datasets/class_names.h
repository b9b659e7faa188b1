#pragma once

#include <string>
#include <vector>

namespace miniqat::datasets {

/// Sorts the names of classes: as numbers if all are, else by their bytes.
void sort_classes(std::vector<std::string>& names);

/// "0", "1", ...: the names of classes that have none.
std::vector<std::string> numbers_below(int count);

}  // namespace miniqat::datasets
