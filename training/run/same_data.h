#pragma once

#include <string>

#include "datasets/dataset.h"
#include "training/run/run_directory.h"

namespace miniqat::training {

/// Throws Error where a user's own files mean something else than the run records: names of classes or of numbers to
/// predict, so that outputs would change places, or means and deviations, so that numbers would. Rounding of another
/// machine is no difference. Nothing is compared that the run does not record, or that the data have none of.
void require_same_meaning(const RunDirectory& run, const std::string& dataset, const datasets::Splits& data);

/// The same, and throws Error where the data have other numbers of pictures than the run records: files may have been
/// added or taken away. Runs of earlier versions have no dataset.json, and recorded them at their end.
void require_same_data(const RunDirectory& run, const std::string& dataset, const datasets::Splits& data);

}  // namespace miniqat::training
