#include "training/run/validation_part.h"

#include <algorithm>
#include <optional>

#include "core/text/error.h"
#include "core/text/json.h"
#include "datasets/class_counts.h"
#include "training/run/init_checkpoint.h"
#include "training/run/run_directory.h"
#include "training/settings/settings.h"
#include "training/settings/usage_error.h"

namespace miniqat::training {

datasets::Splits with_validation_part(const datasets::Splits& data, const TrainSettings& settings) {
  const std::int64_t wanted = settings.validation, size = data.train.size();
  if (wanted > 0 && data.validation)
    fail("--validation ", wanted, ": ", data.train.name, " has a validation part of its own; leave it out");
  if (wanted > 0 && size - wanted < settings.batch_size)
    fail("--validation ", wanted, " leaves ", counted(std::max<std::int64_t>(size - wanted, 0), "training picture"),
         " of ", size, ", fewer than one batch of ", settings.batch_size);
  return datasets::hold_out(data, wanted, settings.validation_method);
}

ValidationPart validation_part_of(const TrainSettings& settings) {
  return {.size = settings.validation, .method = settings.validation_method};
}

void set_validation_part(TrainSettings& settings, const ValidationPart& part) {
  settings.validation = part.size;
  settings.validation_method = part.method;
}

std::string inherit_validation_part(TrainSettings& settings, const AskedValidation& asked) {
  const std::optional<RunDirectory> run = run_of_variables(settings.init_checkpoint);
  if (!run) return "";
  const TrainSettings former = recorded_settings(read_json(run->config()), run->config().string());
  if (former.dataset != settings.dataset) return "";
  const std::string name = settings.init_checkpoint;
  if (former.validation == 0)
    return settings.validation == 0 ? ""
                                    : concat("note: the run in ", name, " was trained with the validation pictures");
  if (asked.size && settings.validation == 0) return "";
  const bool other_size = asked.size && settings.validation != former.validation;
  const bool other_method = asked.method && settings.validation_method != former.validation_method;
  if (other_size || other_method)
    throw UsageError(concat("--validation ", asked.size ? settings.validation : former.validation, ": the run in ",
                            name, " has a validation part of ", counted(former.validation, "picture"),
                            " (--validation-method ",
                            names_of(former.validation_method)[static_cast<std::size_t>(former.validation_method)],
                            "), and has trained with the others; leave it out, or give 0 to train with all pictures"));
  set_validation_part(settings, validation_part_of(former));
  return asked.size ? ""
                    : concat("note: the validation part is that of the run in ", name, ", ",
                             counted(former.validation, "training picture"));
}

std::string validation_counts(const datasets::Splits& data) {
  return concat(counted(data.validation->size(), "validation picture"), ", ",
                datasets::class_counts_text(*data.validation));
}

std::string note_on_small_classes(const datasets::Splits& data) {
  if (!data.validation) return "";
  const std::string missing = datasets::classes_too_small(*data.validation, data.train);
  return missing.empty() ? "" : concat("note: too small for the validation part, which has none of them: ", missing);
}

JudgingPart judging_part(const datasets::Splits& data) {
  if (data.validation) return {.pictures = *data.validation, .name = "validation"};
  return {.pictures = data.test, .name = "test"};
}

}  // namespace miniqat::training
