#pragma once

#include <cstdint>
#include <string>

#include "datasets/dataset.h"
#include "datasets/hold_out.h"
#include "training/settings/train_settings.h"

namespace miniqat::training {

/// The data of a run with its validation part: that of the data, or what TrainSettings::validation holds out of
/// training. Throws Error that names --validation where there are both, and where it leaves fewer training pictures
/// than a batch.
datasets::Splits with_validation_part(const datasets::Splits& data, const TrainSettings& settings);

/// Which training pictures a run holds out.
struct ValidationPart {
  std::int64_t size = 0;
  datasets::HoldOut method = datasets::HoldOut::kByClass;

  bool operator==(const ValidationPart&) const = default;
};
ValidationPart validation_part_of(const TrainSettings& settings);
void set_validation_part(TrainSettings& settings, const ValidationPart& part);

/// Gives settings of a new run that begins from another run on the same data (--init-checkpoint) the validation part of
/// that one, so that no picture judges that has trained. Returns what there is to say about it, "" for nothing.
/// `asked`: what somebody gave; a size of 0 then is obeyed. Throws UsageError for another part than that run's.
struct AskedValidation {
  bool size = false;
  bool method = false;
};
std::string inherit_validation_part(TrainSettings& settings, const AskedValidation& asked);

/// "600 validation pictures, 60 of each of 10 classes", of data that have such a part.
std::string validation_counts(const datasets::Splits& data);

/// A note that names classes of which the validation part has nothing, although there are training pictures of them;
/// "" without any, and without a validation part.
std::string note_on_small_classes(const datasets::Splits& data);

/// Pictures on which choices are measured, and what they are called: "validation" or "test".
struct JudgingPart {
  const datasets::Dataset& pictures;
  const char* name;
};

/// The validation part where there is one, the test pictures where not. `data` must stay.
JudgingPart judging_part(const datasets::Splits& data);

}  // namespace miniqat::training
