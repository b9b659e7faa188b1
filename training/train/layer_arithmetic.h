#pragma once

#include <string>

#include "training/train/training_task.h"

namespace miniqat::training {

/// How many layers round factors, as the settings ask for; "" where they do not.
std::string note_on_rounding(TrainingTask& task);

/// Throws UsageError with `--compute bfloat16` if a layer reads a quantizer of more than 8 bits: its numbers would be
/// rounded. (`--gradients` rounds in layers that multiply integers alone.)
void require_roundable(const TrainingTask& task);

/// The share of a forward pass that multiplies integers, and the other layers, with the reason, a line each. "" where
/// the run's arithmetic does not.
std::string share_of_integers(TrainingTask& task);

}  // namespace miniqat::training
