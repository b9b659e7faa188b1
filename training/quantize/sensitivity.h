#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "quantize/rewrite/layer_bits.h"
#include "training/evaluate/evaluator.h"
#include "training/quantize/bit_allocation.h"
#include "training/run_observer.h"
#include "training/settings/rewrite_settings.h"
#include "training/settings/train_settings.h"

namespace miniqat::training {

struct SensitivitySettings {
  std::int64_t pictures = 2000;
  std::int64_t batches = 32;
  std::int64_t seed = 1;

  static const auto& table() {
    using S = SensitivitySettings;
    static const std::tuple kTable{
        Setting("pictures", &S::pictures, "training pictures to evaluate on, which calibration does not see",
                at_least(1)),
        Setting(
            "batches", &S::batches,
            "batches of training pictures that calibration looks at, of the run's batch size; at most half of all pictures",
            at_least(1)),
        Setting("seed", &S::seed, "chooses the pictures of both", not_negative())};
    return kTable;
  }
  template <class Visitor>
  static void visit(Visitor&& visitor) {
    visit_table(table(), visitor);
  }
};

/// The budget of the chosen widths: one of the first two, or neither for no choice.
struct BitBudget {
  /// At most, of weights and of activations (elements for one picture), each by itself.
  std::optional<double> average_bits = {};
  /// At most, of all weights packed. Activations have `activation_bits`, or the widest width.
  std::optional<std::int64_t> bytes = {};
  std::optional<std::int64_t> activation_bits = {};
};

struct SensitivityRequest {
  /// The directory of a float run; "" with a model.
  std::string run;
  /// The float network in an ONNX file instead, as read_float_model() takes it.
  std::optional<TrainSettings> model = {};
  std::vector<std::int64_t> bits = {2, 3, 4, 8};
  /// 2..16, of the network's output, which few bits hurt and which is small: it has this width whatever the others
  /// have, and no part in budgets. The default is that of `quantize` with few bits.
  std::int64_t logits_bits = 8;
  SensitivitySettings settings = {};
  /// Symmetry, channels, kinds of ranges and scope; its widths do not count.
  RewriteSettings rewrite = {};
  BitBudget budget = {};
  /// The run's own when "".
  std::string dataset = {};
  std::string data_dir = {};
  /// Whether broken files of `dataset` are skipped, if the run did not ask for it.
  bool skip_broken = false;
  /// 0: default_thread_count().
  int threads = 0;

  /// Throws UsageError naming the flag.
  void check() const;
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
  /// By width, widest first, nothing else quantized.
  std::vector<Measurement> alone = {};

  const char* kind() const { return is_weights ? "weights" : "activations"; }
};

/// Widths that keep to a budget. The averages are those of quantizers without fixed_bits.
struct ChosenBits {
  std::vector<quantize::LayerBits> layers;
  std::int64_t weight_bytes = 0;
  double average_weight_bits = 0;
  double average_activation_bits = 0;
  double predicted_loss_increase = 0;
  /// With these widths; `bits` is 0.
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

/// Measures each layer of a float run: its weights alone and its output alone, at every width, with ranges of least
/// squares from training pictures. Sets the number of threads. Throws UsageError and Error for what cannot be measured,
/// and Stopped where the observer wants it.
Sensitivity measure_sensitivity(const SensitivityRequest& request, RunObserver& observer);

}  // namespace miniqat::training
