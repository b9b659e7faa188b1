#pragma once

#include <string>

#include "training/settings/train_settings.h"

namespace miniqat::training {

/// Makes settings of a float network out of those of an ONNX model that comes with its weights, for what begins from a
/// float run otherwise: its batch size, unless that is given, and what is left open. Returns adopt_batch_size()'s note.
/// Throws UsageError for a model without weights, for one without data, and what check() throws.
std::string settle_model(TrainSettings& settings, bool dataset_given, bool batch_given);

}  // namespace miniqat::training
