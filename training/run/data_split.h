#pragma once

#include <span>
#include <string>
#include <string_view>

#include "datasets/dataset.h"
#include "training/run/run_source.h"

namespace miniqat::training {

/// What `--split` takes: "test", "train", "validation".
std::span<const std::string_view> split_names();

/// The pictures of one of these. Throws UsageError for a part that the data have not.
const datasets::Dataset& split_of(const datasets::Splits& data, const std::string& split);

/// Throws UsageError for the validation part of a run that has none, or of another data set than the run's: it is what
/// a run held out of its own training pictures, or what its own files have. `dataset` is "" for the run's own.
void require_split(const RunSource& run, const std::string& split, const std::string& dataset);

}  // namespace miniqat::training
