#include "training/run/validation_part.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "core/error.h"
#include "core/text/counted.h"
#include "core/text/json.h"
#include "datasets/class_counts.h"
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

namespace {

/// The run that the variables of --init-checkpoint are of: its directory, or a file in it.
std::optional<RunDirectory> run_of_variables(const std::string& place) {
  if (place.empty()) return {};
  std::error_code failure;
  const std::filesystem::path path = place;
  const bool is_folder = std::filesystem::is_directory(path, failure);
  const std::filesystem::path folder = is_folder ? path : path.parent_path();
  if (!std::filesystem::exists(folder / "config.json", failure)) return {};
  const RunDirectory run = RunDirectory::open(folder.empty() ? "." : folder);
  if (!is_folder && path.filename() != run.checkpoint().filename()) return {};
  return run;
}

}  // namespace

std::string inherit_validation_part(TrainSettings& settings, bool was_asked) {
  const std::optional<RunDirectory> run = run_of_variables(settings.init_checkpoint);
  if (!run) return "";
  const TrainSettings former = recorded_settings(read_json(run->config()), run->config().string());
  if (former.dataset != settings.dataset) return "";
  const std::string name = settings.init_checkpoint;
  if (former.validation == 0)
    return settings.validation == 0 ? ""
                                    : concat("note: the run in ", name, " was trained with the validation pictures");
  if (was_asked && settings.validation == 0) return "";
  if (was_asked && validation_part_of(settings) != validation_part_of(former))
    throw UsageError(concat("--validation ", settings.validation, ": the run in ", name, " has a validation part of ",
                            counted(former.validation, "picture"),
                            ", and has trained with the others; leave it out, or give 0 to train with all pictures"));
  set_validation_part(settings, validation_part_of(former));
  return was_asked ? ""
                   : concat("the validation part is that of the run in ", name, ", ",
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
