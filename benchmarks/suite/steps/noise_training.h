#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/engine/session.h"
#include "models/models.h"
#include "optim/sgd.h"
#include "quantize/judge/step_judge.h"
#include "quantize/rewrite/rewrite.h"

namespace miniqat::benchmarks {

/// The size of the model's pictures; CIFAR-10's for the models that were published for larger ones.
Shape picture_of(const models::Model& model);

/// A model with its loss, its optimizer and one batch of noise, in float or rewritten.
class NoiseTraining {
 public:
  NoiseTraining(const models::Model& model, const std::optional<quantize::RewriteOptions>& rewrite, std::int64_t batch);
  NoiseTraining(const NoiseTraining&) = delete;

  /// Returns the loss; throws NonFiniteLoss.
  float step() { return session_->train_step(loss_, optimizer_, feeds_); }
  /// A step, every part of it compared with the reference loops.
  void judged_step(quantize::StepJudge& judge);
  /// Bytes of the plan's activations, gradients and saved tensors.
  std::size_t arena() const;

 private:
  Graph graph_;
  Output loss_;
  optim::Sgd optimizer_{{.learning_rate = 0.005, .momentum = 0.9, .weight_decay = 5e-4}};
  std::optional<Session> session_;
  Feeds feeds_;
};

}  // namespace miniqat::benchmarks
