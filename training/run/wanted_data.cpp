#include "training/run/wanted_data.h"

#include "training/run/validation_part.h"
#include "training/settings/usage_error.h"

namespace miniqat::training {

ClassifierOptions classifier_options(const TrainSettings& settings) {
  return {.model = settings.model,
          .model_graph = settings.model_graph,
          .width = settings.width,
          .batch_size = settings.slice_size(),
          .output = settings.output,
          .shards = settings.shards};
}

datasets::Splits load_wanted_data(const TrainSettings& settings) {
  datasets::LoadOptions options{.pictures = picture_options(settings), .skip_broken = settings.skip_broken};
  // The models that have a name are made to the pictures' measure.
  if (is_graph_file(settings.model))
    options.accept = [&](const Shape& example) {
      require_pictures_fit(classifier_options(settings), example, settings.dataset);
    };
  if (settings.data && options.accept) options.accept(settings.data->train.example_shape());
  const datasets::Splits data =
      settings.data ? *settings.data : datasets::load(settings.dataset, settings.data_dir, options);
  return as_usage([&] { return with_validation_part(data, settings); });
}

}  // namespace miniqat::training
