#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "quantize/rewrite/layer_bits.h"
#include "training/evaluate/evaluator.h"

namespace miniqat::training {

/// The budget of the chosen widths: one of the first two, or neither for no choice.
struct BitBudget {
  /// At most, of weights and of activations (elements for one picture), each by itself.
  std::optional<double> average_bits = {};
  /// At most, of all weights packed. Activations have `activation_bits`, or the widest width.
  std::optional<std::int64_t> bytes = {};
  std::optional<std::int64_t> activation_bits = {};
};

/// Widths for all quantizers. Each point of a front differs from the one before in one quantizer.
struct FrontPoint {
  /// The quantizer that went down to `bits`; none for the first point, at which all have the widest width.
  std::optional<std::size_t> quantizer;
  std::int64_t bits = 0;
  /// The bits of all elements together.
  std::int64_t total_bits = 0;
  /// Each quantizer's elements packed by themselves, up to whole bytes.
  std::int64_t bytes = 0;
  /// Predicted.
  double loss_increase = 0;
};

/// The network with some quantizers at work, beside the float network on the same pictures.
struct Measurement {
  std::int64_t bits = 0;
  Evaluation evaluation = {};
  double loss_increase = 0;
  /// The logits' signal-to-noise ratio: 10 log10(sum float^2 / sum (quantized - float)^2). None where both are equal.
  std::optional<double> snr_db = {};
};

/// The weights or the output of a layer.
struct QuantizerSensitivity {
  /// quantize::unfolded_name().
  std::string layer;
  bool is_weights = false;
  /// The weights' one; on an output up to three, which have one width.
  std::vector<std::string> quantizers = {};
  /// The elements of the weights, or of an output for one picture.
  std::int64_t elements = 0;
  /// The width of the network's output beside others, SensitivityRequest::logits_bits. None: it is to be chosen.
  std::optional<std::int64_t> fixed_bits = {};
  /// One for each width, widest first, nothing else quantized.
  std::vector<Measurement> alone = {};

  const char* kind() const { return is_weights ? "weights" : "activations"; }
};

/// Widths that keep to a budget. The averages are those of quantizers without fixed_bits, none where all have them.
struct ChosenBits {
  std::vector<quantize::LayerBits> layers;
  std::int64_t weight_bytes = 0;
  std::optional<double> average_weight_bits = {};
  std::optional<double> average_activation_bits = {};
  double predicted_loss_increase = 0;
  /// The network with these widths; `bits` is 0.
  Measurement measured;
  /// The one width of all weights and, for an average, outputs; none: a width for each layer.
  std::optional<std::int64_t> uniform_bits = {};
};

struct Sensitivity {
  std::string model;
  std::string dataset;
  /// Widest first.
  std::vector<std::int64_t> bits;
  std::int64_t pictures = 0;
  std::int64_t batches = 0;
  std::int64_t batch_size = 0;
  Evaluation in_float;
  /// In the network's order.
  std::vector<QuantizerSensitivity> quantizers;
  /// All of them at once, by width; fixed_bits stay.
  std::vector<Measurement> together;
  /// Quantizers that belong to no layer (of a pool, say), which stay out of it.
  std::vector<std::string> others;
  /// The points' quantizers are counted among the weights and among the outputs without fixed_bits, in the order of
  /// `quantizers`.
  std::vector<FrontPoint> weight_front;
  std::vector<FrontPoint> activation_front;
  /// The candidate with the least measured loss.
  std::optional<ChosenBits> choice;
  /// What keeps to the budget: a width for each layer first, then each width for all. Empty without a budget.
  std::vector<ChosenBits> candidates;
  double seconds = 0;
};

}  // namespace miniqat::training
