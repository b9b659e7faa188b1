#pragma once

#include <string>
#include <vector>

#include "training/evaluate/part_results.h"
#include "training/quantize/network_cost.h"
#include "training/quantize/quantization_plan.h"
#include "training/run_observer.h"

namespace miniqat::training {

/// A network that `miniqat quantize` measured.
struct QuantizedRow {
  /// "float", "calibrated", "trained", "re-estimated" or "integers".
  std::string name;
  PartResults accuracies;
  NetworkCost cost;
};

/// What came of it.
struct QuantizationResult {
  /// In the order of the names above; "trained" unless the training failed, "re-estimated" where batch norms were
  /// estimated, "integers" where there are some.
  std::vector<QuantizedRow> rows;
  /// The name of the row that became the run: the best of all between the first and the integers on the validation
  /// part, by accuracy (or the balanced one), then by loss. Among equals it is the earliest.
  std::string chosen;
  /// The name of the measure that decided, "loss" where the validation part has none: errors without an anomaly, say.
  std::string chosen_by;
  /// Whether the balanced accuracy decided, as in runs that train with class weights.
  bool by_balanced_accuracy = false;
  /// Why there is no trained network: its loss became NaN or infinite. "" where there is one.
  std::string training_failed;
  /// Why there is no row of integers; "" where there is one.
  std::string no_integers;
};

/// The command line that goes on with the run.
std::string quantization_way_on(const RunDirectory& run);

/// Calibrates a float run or an ONNX model, trains from the calibrated network, has the batch norms estimated again,
/// and makes the best of these networks the run in `out`, a locked directory; then measures its integers. The stages
/// are runs in directories of their own; with `resume` those that are done stay, and the training goes on from its
/// checkpoint. A training whose loss becomes NaN or infinite leaves the calibrated network. Sets the number of threads.
/// Throws what calibrate() and train() throw, and Stopped where the observer wants it.
QuantizationResult quantize_run(const QuantizationPlan& plan, const RunDirectory& out, bool resume,
                                RunObserver& observer);

}  // namespace miniqat::training
