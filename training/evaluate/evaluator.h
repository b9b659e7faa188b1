#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "core/engine/session.h"
#include "datasets/dataset.h"
#include "training/hits.h"
#include "training/model_source.h"

namespace miniqat::training {

struct Evaluation : Hits {
  /// Mean cross entropy.
  double loss = 0;
  /// One more example with its logits. Ties go to the lower class; a NaN among them counts as wrong. Until finish(),
  /// `loss` is the sum.
  void count(std::span<const float> logits, std::int32_t label);
  void finish();
};

/// Given each picture of a data set, in order, with its logits.
using OnLogits = std::function<void(std::int64_t index, std::span<const float> logits)>;

/// Runs a classifier over a whole data set in batches of its own size. Ties between logits go to the lower class; a
/// picture whose logits hold a NaN counts as wrong. A profile gets a step for each batch.
Evaluation evaluate(Session& session, const Classifier& classifier, const datasets::Dataset& dataset,
                    const OnLogits& on_logits = {}, Profile* profile = nullptr);

}  // namespace miniqat::training
