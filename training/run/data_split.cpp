#include "training/run/data_split.h"

#include "core/text/error.h"
#include "datasets/user_files.h"
#include "training/settings/usage_error.h"

namespace miniqat::training {

std::span<const std::string_view> split_names() {
  static constexpr std::string_view kNames[] = {"test", "train", "validation"};
  return kNames;
}

const datasets::Dataset& split_of(const datasets::Splits& data, const std::string& split) {
  if (split == "validation" && !data.validation)
    throw UsageError("--split validation: there is no validation part (train --validation N holds one out)");
  if (split == "validation") return *data.validation;
  if (split == "train" && !data.train.images.defined())
    throw UsageError(concat("--split train: ", data.test.name, " has no training pictures, all are test pictures"));
  return split == "train" ? data.train : data.test;
}

void require_split(const RunSource& run, const std::string& split, const std::string& dataset) {
  if (split != "validation") return;
  if (run.settings.validation == 0 && !datasets::is_path(run.settings.dataset))
    throw UsageError(concat("--split validation: the run in ", run.directory.path().string(),
                            " has no validation part (train --validation N holds one out)"));
  if (!dataset.empty() && resolved_dataset(dataset) != run.settings.dataset)
    throw UsageError(concat("--split validation: the validation part is of the run's own data set, ",
                            run.settings.dataset, ", not of --dataset ", dataset));
}

}  // namespace miniqat::training
