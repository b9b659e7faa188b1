#pragma once

#include <filesystem>
#include <map>

#include "datasets/load_options.h"
#include "datasets/part_data.h"

namespace miniqat::datasets {

/// Whether a folder holds labels.csv (or .gz), a table that lists .csv files in its first lines.
bool has_recordings(const std::filesystem::path& folder);

/// Recordings: a table each, a row a step, a column a channel. labels.csv lists them: the column called file, else the
/// first, has their paths in the folder; what they are to be answered with are the columns that the options ask for,
/// else the one called label, class or target, else all others. A column of a recording without a name, an index, is
/// left out, and noted. Result: [n, steps, channels]. `root` is the folder of the data set. Throws Error that names
/// file, line and column: a file that is not there, a first line that names a file and no columns, channels that are
/// called otherwise, lengths that differ (NumberOptions::pad_to).
FoundParts read_recordings(const std::filesystem::path& root, const std::map<Part, std::filesystem::path>& folders,
                           const LoadOptions& options);

}  // namespace miniqat::datasets
