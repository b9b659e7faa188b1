#pragma once

#include <ostream>
#include <string>

#include "labs/lab.h"

namespace lab05 {

struct Range {
  double min = 0;
  double max = 0;
};

/// What a training step leaves behind.
struct Step {
  /// The range after the step.
  Range range;
  /// The step computes with rounded numbers; before that, with the numbers as they are.
  bool quantizes = false;
};

/// Training step number `step`, 1 the first: `stored` is the range after the step before, `batch` the smallest and the
/// largest number of this step's tensor, widened to contain 0. The range is a moving average without bias, with decay
/// `decay`, and step `delay` is the first that quantizes. This is what you fill in.
Step training_step(Range stored, Range batch, int step, double decay, int delay);

void check(lab::Report& report, decltype(&training_step) answer);
void show(std::ostream& out);
std::string figure();

}  // namespace lab05
