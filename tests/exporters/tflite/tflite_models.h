#pragma once

#include "integer/model.h"
#include "tests/integer/random_model.h"

namespace miniqat::testing {

/// Random models that TensorFlow Lite can hold: activations of 8 bits, weights of 2 and more.
inline constexpr RandomModelOptions kTfliteModels = {
    .fewest_activation_bits = 8, .symmetric_weights = true, .plain_windows = true};

/// The model with one scale and zero point for each weight tensor: what becomes uint8.
integer::Model with_scales_per_tensor(integer::Model model);
/// The model with every weight's zero point in the middle: what may become int8.
integer::Model with_symmetric_weights(integer::Model model);
/// The model with weights of 4 bits, -7..7 around a zero point in the middle: what may become INT4.
integer::Model with_int4_weights(integer::Model model);
/// A model of one operation (a Layer, MaxPool or AveragePool) whose window looks `border` pixels further at each side
/// than it did.
integer::Model with_wider_padding(integer::Model model, std::int64_t border);

}  // namespace miniqat::testing
