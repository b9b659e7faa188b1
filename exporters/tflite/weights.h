#pragma once

#include <cstdint>
#include <vector>

#include "exporters/tflite/tflite.h"
#include "exporters/tflite/tflite_generated.h"
#include "integer/model.h"

namespace miniqat::exporters {

/// A layer's weights as TensorFlow Lite lays them out: CONV_2D [out, kh, kw, in], DEPTHWISE_CONV_2D [1, kh, kw, in *
/// multiplier], FULLY_CONNECTED [out, in].
struct TfliteWeights {
  std::vector<std::int32_t> shape = {};
  tflite_schema::TensorType type = tflite_schema::TensorType::UINT8;
  /// A byte for each, or of INT4 two in a byte, the first in the lower half.
  std::vector<std::uint8_t> bytes = {};
  /// One of each, or one for each output channel.
  std::vector<float> scales = {};
  std::vector<std::int64_t> zero_points = {};
  /// The output channel's.
  std::int32_t channel_axis = 0;
  /// At the scales (input's scale) * `scales`.
  std::vector<std::int32_t> bias = {};
};

/// The integers of a whole file, and why they have a sign.
enum class TfliteIntegers {
  kUInt8,
  /// Some layer has a weight scale for each channel, which TensorFlow Lite knows for int8 only.
  kInt8ForChannels,
  /// uint8 would do.
  kInt8AsAsked,
  /// Weights of at most 4 bits are INT4, everything else is int8.
  kInt4,
};

/// Throws Error where `int4` is asked for and no layer has such weights.
TfliteIntegers tflite_integers(const integer::Model& model, const TfliteOptions& options);

/// As uint8, with the layer's zero point, or as int8 or INT4, whose zero point is 0. Throws Error naming the operation
/// if int8 weights lie more than 127 from their zero point, INT4 weights more than 7; the error gives the reason for
/// the type and a remedy. Also throws for uint8 if the layer has a scale for each channel.
TfliteWeights tflite_weights(const integer::Operation& operation, const integer::Layer& layer, TfliteIntegers integers);

}  // namespace miniqat::exporters
