#include "training/settings/model_start.h"

#include "training/model_source.h"
#include "training/settings/usage_error.h"

namespace miniqat::training {

std::string settle_model(TrainSettings& settings, bool dataset_given, bool batch_given) {
  if (!is_onnx_file(settings.model))
    throw UsageError(concat("--model ", settings.model, " has no weights to quantize: give an ONNX model, or train it ",
                            "first (miniqat train --float) and give the run"));
  if (!dataset_given) throw UsageError("--model needs --dataset, the pictures that the network is for");
  settings.float_only = true;
  check_dataset(settings.dataset, settings.data_dir);
  check(settings);
  std::string note = batch_given ? "" : adopt_batch_size(settings);
  resolve(settings);
  return note;
}

}  // namespace miniqat::training
