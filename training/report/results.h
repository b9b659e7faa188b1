#pragma once

#include <optional>
#include <vector>

#include "training/report/run_report.h"
#include "training/run/run_directory.h"
#include "training/run/run_source.h"

namespace miniqat::training {

/// The stage whose network a quantized run holds, as its files tell: "calibrated", "trained" or "re-estimated".
std::string own_stage(const RunDirectory& directory, const RunReport& run);

/// What the run's task measures and, as far as that is known of the run, is there: AUC needs anomalies. The first
/// decides.
std::vector<MeasureKind> measures_of(const RunReport& run);

struct RunCosts {
  /// The cost of the network before any rewrite, and the cost of the run's own network.
  std::optional<NetworkCost> in_float = {};
  std::optional<NetworkCost> own = {};
};

/// The networks that led to the run, and its own: those of the table that `quantize` left, and those that were measured
/// for the report, whose numbers count if they are of all pictures. A list of objects: "name" is "float", "calibrated",
/// "trained", "re-estimated" or "integers", "is_run" that of the network that the run holds, what its task measures is
/// there as in a summary.json, costs as in quantize.json, and "seconds" are those of its training or calibration.
/// "first_examples": the accuracy is one of so many pictures, the first of the part that the page evaluates; null: of
/// all. Null is what is not known.
nlohmann::ordered_json result_rows(const RunDirectory& directory, const RunReport& run, const RunCosts& costs);

/// The float run that a quantized run came from, by `calibrate`, `quantize` or `train --init-checkpoint`, also in
/// several steps. It is looked for at the path that the run's files name, seen from here, then beside the run. A run of
/// another test accuracy, or what else its task measures, than was measured then is another run. None if the run began
/// without one, or it is gone.
std::optional<FloatRun> float_origin(const RunDirectory& run);

}  // namespace miniqat::training
