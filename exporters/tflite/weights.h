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

/// The integers of a whole file, and why they have a sign.
enum class TfliteIntegers {
  kUInt8,
  /// Some layer has a weight scale for each channel, which TensorFlow Lite knows for int8 only.
  kInt8ForChannels,
  /// uint8 would do.
  kInt8AsAsked,
};

/// `int8`: TfliteOptions'.
TfliteIntegers tflite_integers(const integer::Model& model, bool int8);

/// As uint8, with the layer's zero point, or as int8, whose zero point is 0. Throws Error naming the operation if int8
/// weights lie more than 127 from their zero point; the error gives the reason for int8 and a remedy. Also throws for
/// uint8 if the layer has a scale for each channel.
TfliteWeights tflite_weights(const integer::Operation& operation, const integer::Layer& layer, TfliteIntegers integers);

}  // namespace miniqat::exporters
