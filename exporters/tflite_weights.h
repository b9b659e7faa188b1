#pragma once

#include <cstdint>
#include <vector>

#include "integer/model.h"

namespace miniqat::exporters {

/// A layer's weights as TensorFlow Lite lays them out: CONV_2D [out, kh, kw, in], DEPTHWISE_CONV_2D [1, kh, kw, in *
/// multiplier], FULLY_CONNECTED [out, in].
struct TfliteWeights {
  std::vector<std::int32_t> shape;
  std::vector<std::uint8_t> bytes;
  /// One, or one for each output channel.
  std::vector<std::int64_t> zero_points;
  /// The output channel's.
  std::int32_t channel_axis = 0;
};

/// Whether some layer has a weight scale for each channel, which TensorFlow Lite knows for int8 only.
bool any_per_channel(const integer::Model& model);

/// As uint8, with the layer's zero point, or as int8, whose zero point is 0. Throws Error naming the operation when
/// the weights lie more than 127 from their zero point, where int8 ends, or when uint8 is asked for and the layer has
/// a scale for each channel.
TfliteWeights tflite_weights(const integer::Operation& operation, const integer::Layer& layer, bool is_signed);

}  // namespace miniqat::exporters
