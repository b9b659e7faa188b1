#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "training/quantize/measured_widths.h"
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

/// Measures each layer of a float run: its weights alone and its output alone, at every width, with ranges of least
/// squares from training pictures. Sets the number of threads. Throws UsageError and Error for what cannot be measured,
/// and Stopped where the observer wants it.
Sensitivity measure_sensitivity(const SensitivityRequest& request, RunObserver& observer);

}  // namespace miniqat::training
