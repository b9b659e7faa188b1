#pragma once

#include <cstdint>

namespace miniqat::models {

struct ModelOptions {
  /// How many numbers the network gives for an example: classes, or targets.
  std::int64_t outputs = 10;
  /// Multiplies the channels of every layer but the last; at least one channel stays. (mobilenet_v2 rounds in its own
  /// way: see there.)
  double width = 1.0;
  /// The decay of the moving statistics, for models with batch norm.
  double batch_norm_decay = 0.99;
};

}  // namespace miniqat::models
