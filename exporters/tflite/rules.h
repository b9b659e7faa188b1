#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "core/tensors/window.h"
#include "exporters/tflite/tflite_generated.h"
#include "integer/arithmetic.h"

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

}  // namespace miniqat::exporters
