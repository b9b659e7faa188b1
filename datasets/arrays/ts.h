#pragma once

#include <filesystem>
#include <map>

#include "datasets/load_options.h"
#include "datasets/part_data.h"

namespace miniqat::datasets {

/// Series in the text format of the UCR/UEA archives, `.ts`, perhaps gzipped: lines of a header that begin with "@",
/// then a line for each series: its dimensions with ':' between them, the steps of each with ',' between them, and last
/// its class or the number to predict. Result: [n, steps, dimensions]. The header's @dimensions, @univariate and
/// @seriesLength must agree with the data, and a class must be one of @classLabel; these are the classes. With
/// NumberOptions::answers the last is a class or a number whatever the header calls it. Throws Error that names file
/// and line: time stamps, a value that is missing ("?") or no number, counts that differ, and lengths that do unless
/// they are filled up (NumberOptions::pad_to).
FoundParts read_ts(const std::map<Part, std::filesystem::path>& files, const LoadOptions& options);

/// The parts that go with a file: NAME_TEST.ts beside NAME_TRAIN.ts, each perhaps with .gz behind it, is the test part.
std::map<Part, std::filesystem::path> ts_parts(const std::filesystem::path& file);

/// Whether a file is called like one: it ends in .ts or .ts.gz.
bool is_ts(const std::filesystem::path& file);

}  // namespace miniqat::datasets
