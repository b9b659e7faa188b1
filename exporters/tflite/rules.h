#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/tensors/window.h"
#include "exporters/tflite/tflite_generated.h"
#include "integer/arithmetic.h"
#include "integer/model.h"

namespace miniqat::exporters {

// TensorFlow Lite's own rules for numbers that it derives from a model, and their relation to ours.

inline constexpr std::int32_t kByteMax = 255;

/// The way of an operator's output into an integer::Clamp. TensorFlow Lite fuses an activation with the operator and
/// computes its bounds from the output's scale and zero point. If these are not the clamp's, a maximum and a minimum
/// with a constant follow.
struct TfliteBounds {
  tflite_schema::Activation activation = tflite_schema::Activation::NONE;
  std::optional<std::int32_t> at_least = {};
  std::optional<std::int32_t> at_most = {};
};

/// For an operator whose output stays within [0, reach] by itself, 255 unless it passes on what it reads; `fuses` says
/// whether it takes an activation.
TfliteBounds tflite_bounds(const integer::Grid& grid, const integer::Clamp& clamp, bool fuses,
                           std::int32_t reach = kByteMax);

/// SAME or VALID where that rule places all windows as `window` does, padding included; nothing where neither does.
std::optional<tflite_schema::Padding> tflite_padding(const Window2d& window);

/// The borders, before and after, that make an axis one that VALID places alike. After it less than the window's own
/// where the last pixels are never looked at.
std::array<std::int64_t, 2> tflite_borders(const WindowAxis& axis);

/// `window` over an image that has got these borders: without padding.
Window2d with_borders(const Window2d& window);

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

/// The width of INT4; weights of fewer bits fit it, too.
inline constexpr int kInt4Bits = 4;

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

/// As uint8, with the layer's zero point, or as int8 or INT4, whose zero point is 0. Throws Error naming the operation
/// if int8 weights lie more than 127 from their zero point, INT4 weights more than 7; the error gives the reason for
/// the type and a remedy. Also throws for uint8 if the layer has a scale for each channel.
TfliteWeights tflite_weights(const integer::Operation& operation, const integer::Layer& layer, TfliteIntegers integers);

}  // namespace miniqat::exporters
