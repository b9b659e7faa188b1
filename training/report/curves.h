#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "training/run/run_directory.h"

namespace miniqat::training {

struct CurvePoint {
  std::int64_t step = 0;
  double value = 0;
};

struct RangePoint {
  std::int64_t step = 0;
  double min = 0;
  double max = 0;
};

/// How one number went over the steps: "loss", "learning_rate", "test_accuracy", ... as metrics.jsonl calls it.
struct Curve {
  std::string name;
  std::vector<CurvePoint> points = {};
};

struct RangeCurve {
  std::string quantizer;
  std::vector<RangePoint> points = {};
};

/// A step at which something changed.
struct CurveMark {
  std::int64_t step = 0;
  /// "quantization begins", "batch norms freeze", "made longer", or the failure of the run.
  std::string text;
};

struct Curves {
  std::vector<Curve> numbers = {};
  std::vector<RangeCurve> ranges = {};
  /// Sorted by their steps.
  std::vector<CurveMark> marks = {};
  /// The step of the last line.
  std::int64_t last_step = 0;
  /// Lines with numbers; a curve has fewer points where it was thinned.
  std::int64_t lines = 0;
  /// "run/metrics.jsonl: line 7 is damaged and left out", or the number of such lines; "" without.
  std::string damage = {};
};

/// Reads the curves of a run that may still be trained: a line without an end is not read yet. Each curve has at most
/// `most_points` points, evenly chosen, the first and the last among them. Empty without a metrics.jsonl, but for the
/// marks of delays, which the training graph tells. Throws Error for files that cannot be read.
Curves read_curves(const RunDirectory& run, std::size_t most_points = 500);

}  // namespace miniqat::training
