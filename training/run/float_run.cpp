#include "training/run/float_run.h"

#include "quantize/fake_quant.h"
#include "quantize/quantizers.h"
#include "training/run/class_weights.h"
#include "training/run/data_of_run.h"
#include "training/run/init_checkpoint.h"
#include "training/run/run_directory.h"
#include "training/run/run_source.h"
#include "training/run/validation_part.h"
#include "training/settings/settings.h"

namespace miniqat::training {

FloatRun read_float_run(const std::string& path) {
  const RunDirectory run = RunDirectory::open(path);
  FloatRun result{.path = path};
  result.settings = recorded_settings(read_json(run.config()), run.config().string());
  use_own_class_weights(result.settings, run);
  result.class_names = recorded_class_names(run);
  result.graph_name = run.eval_graph().string();
  result.evaluation = find_classifier(read_network(result.graph_name), result.graph_name);
  result.training = find_classifier(read_network(run.train_graph()), run.train_graph().string());
  for (const Node* node : result.evaluation.graph.nodes())
    if (node->as<quantize::FakeQuant>() != nullptr)
      fail("the run in ", path, " is quantized already (", quantize::quantization_of(result.evaluation.graph).label(),
           ", by ", describe(*node), " and others): give a float run, as `miniqat train --float` makes it");
  const TrainedVariables variables = trained_variables(path);
  result.note = variables.note;
  result.checkpoint_name = variables.file.string();
  result.checkpoint = read_safetensors(variables.file);
  return result;
}

FloatRun read_float_model(const TrainSettings& settings) {
  FloatRun result{.settings = settings, .graph_name = settings.model, .checkpoint_name = settings.model};
  result.settings.float_only = true;
  const datasets::Splits data = load_wanted_data(settings);
  result.class_names = data.train.class_names;
  result.training = make_classifier(classifier_options(settings), data.train);
  Session session(result.training.graph);
  start_from(settings.model, session);
  result.checkpoint = session.checkpoint();
  add_loss(result.training, settings.label_smoothing, class_weights_of(settings, data.train));
  result.evaluation = without_loss(result.training);
  return result;
}

void take_over(Session& session, const FloatRun& source) {
  const Session::RestoreReport report =
      session.restore(source.checkpoint, Session::Restore::kByName, source.checkpoint_name);
  for (const std::string& name : report.fresh) {
    const Node* owner = session.graph().find(scope_of(name));
    if (owner == nullptr || owner->as<quantize::FakeQuant>() == nullptr)
      fail(source.checkpoint_name, ": the rewritten graph needs \"", name,
           "\", which this run does not have; only training can give it (train --init-checkpoint)");
  }
}

FloatRunData load_data(const FloatRun& run, const std::string& dataset, const std::string& data_dir) {
  if (run.is_run() && dataset == run.settings.dataset) require_still_there(run.path, dataset);
  datasets::LoadOptions options = load_options({.settings = run.settings,
                                                .images = run.evaluation.images.shape(),
                                                .classes = static_cast<int>(run.evaluation.logits.shape()[1]),
                                                .class_names = run.class_names},
                                               dataset);
  options.accept = [&](const Shape& example) {
    require_pictures_fit(run.evaluation.images, example, dataset, run.graph_name);
  };
  const datasets::Splits data = datasets::load(dataset, data_dir, options);
  require_fit(run.evaluation, data.train, run.graph_name);
  if (dataset == run.settings.dataset)
    return {.splits = with_validation_part(data, run.settings), .held_out = run.settings.validation};
  if (const auto own = moved_data(RunDirectory::open(run.path), run.settings, data))
    return {.splits = *own, .held_out = run.settings.validation};
  // Other data have nothing to do with those that the run chose by.
  return {.splits = data};
}

}  // namespace miniqat::training
