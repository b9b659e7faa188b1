#pragma once

#include "datasets/dataset.h"
#include "training/settings/train_settings.h"

namespace miniqat::training {

/// The data of a run with its validation part: that of the data, or what TrainSettings::validation holds out of
/// training. Throws Error that names --validation where there are both, and where it leaves fewer training pictures
/// than a batch.
datasets::Splits with_validation_part(const datasets::Splits& data, const TrainSettings& settings);

/// Pictures on which choices are measured, and what they are called: "validation" or "test".
struct JudgingPart {
  const datasets::Dataset& pictures;
  const char* name;
};

/// The validation part where there is one, the test pictures where not. `data` must stay.
JudgingPart judging_part(const datasets::Splits& data);

}  // namespace miniqat::training
