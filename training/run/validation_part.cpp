#include "training/run/validation_part.h"

#include <algorithm>

#include "core/error.h"
#include "core/text/counted.h"
#include "datasets/hold_out.h"

namespace miniqat::training {

datasets::Splits with_validation_part(const datasets::Splits& data, const TrainSettings& settings) {
  const std::int64_t wanted = settings.validation, size = data.train.size();
  if (wanted > 0 && data.validation)
    fail("--validation ", wanted, ": ", data.train.name, " has a validation part of its own; leave it out");
  if (wanted > 0 && size - wanted < settings.batch_size)
    fail("--validation ", wanted, " leaves ", counted(std::max<std::int64_t>(size - wanted, 0), "training picture"),
         " of ", size, ", fewer than one batch of ", settings.batch_size);
  return datasets::hold_out(data, wanted);
}

JudgingPart judging_part(const datasets::Splits& data) {
  if (data.validation) return {.pictures = *data.validation, .name = "validation"};
  return {.pictures = data.test, .name = "test"};
}

}  // namespace miniqat::training
