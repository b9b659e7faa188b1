#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/tensors/random.h"
#include "core/tensors/tensor.h"
#include "integer/model.h"

namespace miniqat::testing {

/// What random layers may have. Formats that cannot hold everything restrict it.
struct RandomModelOptions {
  int fewest_weight_bits = 2;
  int fewest_activation_bits = 2;
  /// Weights per channel only with the zero point in the middle (as int8 wants it).
  bool symmetric_weights = false;
  /// Weights have the lowest integer, too (--full-range-weights).
  bool full_range_weights = false;
  /// Every tensor on so many bits, weights as well; 0 for any.
  int only_bits = 0;
  /// Windows with SAME or VALID only.
  bool plain_windows = false;
};

/// Grows a model operation by operation on the tensor made last (or the one given), with shapes, strides, paddings,
/// bits, zero points and scales drawn at random; scales so that outputs use their grid, some clamped. Every method
/// returns the new tensor's index.
class RandomModel {
 public:
  RandomModel(std::uint64_t seed, const Shape& input, const RandomModelOptions& options = {});

  int conv2d(std::int64_t channels) { return convolution(integer::LayerKind::kConv2d, channels); }
  /// `multiplier` outputs for each input channel.
  int depthwise_conv2d(std::int64_t multiplier = 1) {
    return convolution(integer::LayerKind::kDepthwiseConv2d, multiplier);
  }
  /// Flattens first where need be.
  int fully_connected(std::int64_t channels);
  /// Of two tensors of one shape.
  int add(int a, int b);
  /// Of two tensors of as many axes.
  int mul(int a, int b);
  /// The last tensor times parts of it, which are stretched: one factor for each channel, for each row, ...; or the
  /// products of two parts, of which both are.
  int gate();
  int rescale();
  /// Along the last axis.
  int concat(int a, int b);
  int average_pool();
  /// Over the whole image, to [c].
  int mean();
  int max_pool();
  int reshape(const Shape& shape);
  int pad();
  /// At random along each axis, often every second or third.
  int slice();
  /// By a table of random integers, or by that of a function, whose results lie on `grid`.
  int lookup();
  int lookup(const std::string& function, const std::function<double(double)>& f, const integer::Grid& grid);
  /// One of those above that the last tensor's shape allows.
  int anything();

  int last() const { return model_.output; }
  Random& random() { return random_; }
  /// The model so far, checked, the last tensor its output.
  integer::Model finish() const;

 private:
  int convolution(integer::LayerKind kind, std::int64_t channels);
  /// Of a tensor the first place of each axis that does not stay.
  int first_of_axes(int a, const std::vector<bool>& stays);
  int append_layer(integer::Layer layer, const Shape& shape);
  int append(integer::Action action, std::vector<int> inputs, const Shape& shape, const integer::Grid& grid);
  Window2d window(bool pool);
  integer::Grid grid(double scale);
  int between(int low, int high) { return low + static_cast<int>(random_.below(high - low + 1)); }
  const integer::TensorInfo& current() const { return model_.tensors[model_.output]; }

  Random random_;
  RandomModelOptions options_;
  integer::Model model_;
};

/// A batch of n random inputs for the model, [n, ...] uint8, each integer on its input's grid.
Tensor random_images(Random& random, const integer::Model& model, std::int64_t n);

/// Leaves of a layer's weights and zero points only the lowest bits.
void cut_weights(integer::Layer& layer, int bits);

/// A network of some depth with every kind of operation in it, with a residual connection.
integer::Model random_network(std::uint64_t seed, const RandomModelOptions& options = {});

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
