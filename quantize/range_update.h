#pragma once

#include <span>

#include "quantize/fake_quant.h"
#include "quantize/range_observer.h"

namespace miniqat::quantize {

/// The values of a quantizer that a training step changes, per channel; it holds the last step's values when this one
/// begins.
struct StoredRange {
  std::span<float> min;
  std::span<float> max;
  /// Null for kinds of ranges that don't count steps.
  float* num_updates = nullptr;
};

/// Makes the ranges of this step out of what its tensor shows, by the kind of range: stores them, and puts them in the
/// place of what was observed. A tensor with a NaN or an infinity says nothing about its range. The step's ranges are
/// then NaN, and so is every y, so that no later op that ignores NaNs hides the trouble. The stored ranges keep their
/// last good values, also if no loss depends on this node and a run would commit them.
void update_ranges(const FakeQuantAttributes& attributes, Observation<float>& observation, const StoredRange& stored);

}  // namespace miniqat::quantize
