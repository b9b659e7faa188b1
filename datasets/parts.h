#pragma once

#include <filesystem>

#include "datasets/dataset.h"
#include "datasets/load_options.h"
#include "datasets/part_data.h"

namespace miniqat::datasets {

/// Makes the splits of what a reader found at `path`: numbers classes that have names, splits off a test part where
/// there is none, keeps groups together, drops what was skipped, and standardises numbers. Throws Error where the parts
/// do not fit together or do not fit the options.
Splits splits_of(const std::filesystem::path& path, FoundParts parts, const LoadOptions& options);

}  // namespace miniqat::datasets
