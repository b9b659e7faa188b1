#pragma once

#include <filesystem>
#include <map>

#include "datasets/load_options.h"
#include "datasets/part_data.h"

namespace miniqat::datasets {

/// Tables of examples, a row each: [n, features], with classes or numbers to predict (answers.h). Which columns these
/// are, and which one has the groups, the options say; without any that is called so there are no answers. All other
/// columns are features, and must have the same names in all parts. A column without a name, as a table's index has it,
/// is left out, and noted. Throws Error that names file, line and column.
FoundParts read_number_tables(const std::map<Part, std::filesystem::path>& files, const LoadOptions& options);

}  // namespace miniqat::datasets
