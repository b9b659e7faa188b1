#pragma once

#include "training/report/report.h"
#include "training/run/run_directory.h"

namespace miniqat::training {

/// The stage whose network a quantized run holds, as its files tell: "calibrated", "trained" or "re-estimated".
std::string own_stage(const RunDirectory& directory, const RunReport& run);

struct RunCosts {
  /// The cost of the network before any rewrite, and the cost of the run's own network.
  std::optional<NetworkCost> in_float = {};
  std::optional<NetworkCost> own = {};
};

/// The networks of the run: those of the table that `quantize` left, and those that were measured for the report, whose
/// numbers count if they are of all pictures.
std::vector<ResultRow> result_rows(const RunDirectory& directory, const RunReport& run, const RunCosts& costs);

}  // namespace miniqat::training
