#pragma once

#include "training/model_source.h"
#include "training/settings/train_settings.h"

namespace miniqat::training {

/// Throws Error naming the batch norm and the batch size, if training steps of this classifier normalise each number by
/// itself: by a BatchNorm, or by one in primitive ops that takes moments. A session refuses the former in its first
/// step.
void require_numbers_to_normalise(const Classifier& training, const TrainSettings& settings);

}  // namespace miniqat::training
