#pragma once

#include "datasets/dataset.h"
#include "integer/model.h"
#include "training/evaluate/evaluator.h"

namespace miniqat::training {

/// Runs an integer classifier over a whole data set. The loss is that of the dequantized logits. Ties between logits,
/// which are frequent among integers, go to the lower class, as in evaluate(). `on_logits` is given the dequantized
/// ones.
Evaluation evaluate_integers(const integer::Model& model, const datasets::Dataset& dataset,
                             const OnLogits& on_logits = {});

}  // namespace miniqat::training
