#pragma once

#include <string>

#include "datasets/dataset.h"
#include "training/run/run_directory.h"

namespace miniqat::training {

/// Throws Error where a user's own files mean something else than the run records: names of classes, columns or numbers
/// to predict, so that these would change places, or means and deviations, so that numbers would; or where they have
/// other numbers of pictures: files may have been added or taken away. Rounding of another machine is no difference.
/// Nothing is compared that the run does not record, or that the data have none of. Runs of earlier versions have no
/// dataset.json, and recorded these numbers at their end.
void require_same_data(const RunDirectory& run, const std::string& dataset, const datasets::Splits& data);

/// Like require_same_data(), for data, standardised with their own means and deviations, that may have grown: other
/// numbers of examples will do, and means and deviations that are less than half a deviation off, so that the run's own
/// fit them. Returns a note on what has changed, "" for nothing.
std::string require_similar_data(const RunDirectory& run, const std::string& dataset, const datasets::Splits& data);

/// A note on the data of a run where they have more or fewer examples than it records, whatever the parts; "" for
/// nothing.
std::string note_on_growth(const RunDirectory& run, const std::string& dataset, const datasets::Splits& data);

}  // namespace miniqat::training
