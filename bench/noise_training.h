#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/engine/session.h"
#include "core/graph/graph.h"
#include "optim/sgd.h"
#include "quantize/rewrite/rewrite.h"

namespace miniqat::bench {

/// What is trained.
struct NoiseWorkload {
  /// A name of models::model_names().
  std::string model;
  std::int64_t batch = 128;
  /// Pixels a side; 0 takes the model's own. Of another size there are ten classes.
  std::int64_t side = 0;
  double learning_rate = 0.005;
  /// None: in float.
  std::optional<quantize::RewriteOptions> rewrite = {};
  Arithmetic arithmetic = Arithmetic::kSimulated;
  FactorRounding rounding = FactorRounding::kNone;
};

/// A model with its loss, SGD (momentum 0.9, weight decay 5e-4) and one batch of noise to learn by heart.
class NoiseTraining {
 public:
  /// Throws Error for an unknown model.
  explicit NoiseTraining(const NoiseWorkload& workload);
  NoiseTraining(const NoiseTraining&) = delete;

  /// Returns the loss; throws NonFiniteLoss.
  float step() { return session_->train_step(loss_, optimizer_, feeds_); }
  /// Trains for some steps. Throws Error if the loss does not fall.
  void warm_up(int steps);
  Session& session() { return *session_; }

 private:
  std::string model_;
  optim::Sgd optimizer_;
  Graph graph_;
  Output loss_;
  std::optional<Session> session_;
  Feeds feeds_;
};

}  // namespace miniqat::bench
