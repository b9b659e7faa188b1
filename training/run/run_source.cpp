#include "training/run/run_source.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/files/files.h"
#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/suggest.h"
#include "datasets/known_datasets.h"
#include "importers/onnx/import.h"
#include "quantize/fake_quant.h"
#include "training/run/data_of_run.h"
#include "training/run/init_checkpoint.h"
#include "training/run/integer_source.h"
#include "training/run/output_names.h"
#include "training/run/own_copies.h"
#include "training/settings/settings.h"

namespace miniqat::training {
namespace {

datasets::Inputs recorded_inputs(const RunDirectory& run) {
  if (recorded_of_data(run, "inputs") == "numbers") return datasets::Inputs::kNumbers;
  return recorded_of_data(run, "input_scale").is_number() ? datasets::Inputs::kPictures : datasets::Inputs::kAuto;
}

TrainedOn trained_on(const RunSource& run, const Classifier& network) {
  return {.settings = run.settings,
          .images = network.images.shape(),
          .classes = network.task == &classification() ? static_cast<int>(network.outputs()) : 0,
          .inputs = recorded_inputs(run.directory),
          .outputs = network.outputs(),
          .class_names = recorded_names(run.directory, "class_names"),
          .input_names = recorded_names(run.directory, "input_names"),
          .standard = recorded_standard(run.directory, false),
          .target_standard = recorded_standard(run.directory, true)};
}

/// A run that is made on a data set with a name reads it on that one's own grid.
void require_grid_of(const std::string& dataset, const CodeGrid& grid, const std::string& run) {
  const datasets::KnownDataset& known = datasets::find_dataset(dataset);
  if (known.kind() == datasets::DataKind::kNamedPictures &&
      (known.scale != grid.scale || static_cast<float>(known.zero_point) != grid.zero_point))
    fail("the pixels of the run in ", run, " have another mean or deviation than those of ", dataset,
         "; give pictures as files, or leave --dataset out");
}

Classifier fitting_classifier(const std::string& source, const Task& task, const datasets::Dataset& pictures) {
  Classifier classifier = find_classifier(read_network(source), source, task);
  require_fit(classifier, pictures, source);
  return classifier;
}

/// Whether nobody knows some answer: then these are not the run's own data.
bool lacks_answers(const datasets::Dataset& part, const Task& task) {
  if (part.has_classes())
    return std::ranges::any_of(part.labels.values<std::int32_t>(), [](std::int32_t label) { return label < 0; });
  if (part.targets.defined())
    return std::ranges::any_of(part.targets.values<float>(), [](float target) { return std::isnan(target); });
  return &task != &reconstruction();
}

}  // namespace

quantize::Quantization quantization_of(const RunDirectory& run) {
  return quantize::quantization_of(read_network(run.train_graph()));
}

void use_model_copy(TrainSettings& settings, const RunDirectory& run) {
  if (!is_graph_file(settings.model)) return;
  if (is_there(run.model_graph()))
    settings.model_graph = run.model_graph().string();
  else if (!is_there(settings.model))
    fail("the run in ", run.path().string(), " needs its model file ", settings.model,
         ", which is not there: put it back, or go to the folder where the run began");
}

RunSource open_run(const std::string& run, const std::string& checkpoint) {
  RunSource source{.directory = RunDirectory::open(run), .settings = {}, .checkpoint = {}};
  TrainedVariables variables = trained_variables(checkpoint.empty() ? run : checkpoint);
  source.checkpoint = variables.file.string();
  source.note = std::move(variables.note);
  source.settings = settings_of(source.directory);
  return source;
}

TrainedOn trained_on(const RunSource& run) {
  const std::string graph = run.directory.eval_graph().string();
  return trained_on(run, find_classifier(read_network(graph), graph, task_of(run.settings)));
}

datasets::Splits load_data(const RunSource& run, const std::string& dataset, const std::string& data_dir,
                           bool answers_optional) {
  const std::string name = dataset.empty() ? run.settings.dataset : resolved_dataset(dataset);
  check_dataset(name, data_dir);
  const std::string graph = run.directory.eval_graph().string();
  const Classifier network = find_classifier(read_network(graph), graph, task_of(run.settings));
  if (dataset.empty()) require_still_there(run.directory.path().string(), name);
  const TrainedOn trained = trained_on(run, network);
  datasets::LoadOptions options = load_options(trained, name);
  options.accept = [&](const Shape& example) { require_pictures_fit(network.images, example, name, graph); };
  options.accept_kind = [&](datasets::DataKind kind) {
    require_kind_fits(kind, Shape(network.images.shape().extents().subspan(1)), name, graph);
  };
  const bool is_own = name == run.settings.dataset;
  options.train_optional = options.whole_as_test = !is_own;
  options.answers_optional = answers_optional && !is_own;
  datasets::Splits data = datasets::load(name, data_dir.empty() ? run.settings.data_dir : data_dir, options);
  require_order_of(recorded_output_names(run.directory, *network.task), *network.task, data.test, graph);
  if (is_own) return with_validation_part(data, run.settings);
  if (lacks_answers(data.test, *network.task)) {
    for (datasets::Dataset* part : {&data.train, &data.test, data.validation ? &*data.validation : nullptr})
      if (part != nullptr && part->images.defined()) describe_outputs(trained, *part);
    return data;
  }
  // The split counts broken files, too, so only the reader can part what is left.
  if (is_gone(run.settings.dataset) && !data.remarks().skipped.empty() && !data.train.images.defined()) {
    options.whole_as_test = false;
    try {
      const datasets::Splits parts = datasets::load(name, data_dir.empty() ? run.settings.data_dir : data_dir, options);
      return moved_data(run.directory, run.settings, parts).value_or(data);
    } catch (const Error&) {
      // Other data, too few for parts.
      return data;
    }
  }
  return moved_data(run.directory, run.settings, data).value_or(data);
}

std::optional<integer::Grid> recorded_input(const RunSource& run) {
  const Json scale = recorded_of_data(run.directory, "input_scale");
  std::int32_t zero = 0;
  if (scale.is_number() && std::isfinite(scale.get<float>()) &&
      integer_from_json(recorded_of_data(run.directory, "input_zero_point"), zero))
    return integer::Grid{.scale = scale.get<float>(), .zero_point = zero, .bits = 8};
  if (recorded_of_data(run.directory, "inputs") == "numbers") return {};
  return grid_of(load_data(run, {}, {}).test);
}

std::optional<double> recorded_accuracy(const RunSource& run) {
  if (run.checkpoint != run.directory.checkpoint()) return {};
  return number_at(json_if_there(run.directory.summary()), "test_accuracy");
}

EvaluationSession::EvaluationSession(const RunSource& run, const datasets::Dataset& pictures)
    : classifier(fitting_classifier(run.directory.eval_graph().string(), task_of(run.settings), pictures)),
      session(classifier.graph, {.arithmetic = run.settings.arithmetic}) {
  session.restore(read_safetensors(run.checkpoint), Session::Restore::kVariables, run.checkpoint);
}

FloatRun read_float_run(const std::string& path) {
  const RunDirectory run = RunDirectory::open(path);
  FloatRun result{.path = path};
  result.settings = settings_of(run);
  use_own_class_weights(result.settings, run);
  result.class_names = recorded_names(run, "class_names");
  result.graph_name = run.eval_graph().string();
  const Task& task = task_of(result.settings);
  result.evaluation = find_classifier(read_network(result.graph_name), result.graph_name, task);
  result.training = find_classifier(read_network(run.train_graph()), run.train_graph().string(), task);
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
  if (!result.training.notes.empty()) result.note = "note: " + joined(result.training.notes, "; ");
  Session session(result.training.graph);
  start_from(settings.model, session, settings.output);
  result.checkpoint = session.checkpoint();
  add_loss(result.training, {settings.label_smoothing, class_weights_of(settings, data.train), settings.huber});
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
  const Classifier& network = run.evaluation;
  TrainedOn trained{.settings = run.settings, .images = network.images.shape(), .class_names = run.class_names};
  if (network.task == &classification()) trained.classes = static_cast<int>(network.outputs());
  if (run.is_run()) {
    trained.inputs = recorded_inputs(RunDirectory::open(run.path));
    trained.input_names = recorded_names(RunDirectory::open(run.path), "input_names");
    trained.standard = recorded_standard(RunDirectory::open(run.path), false);
    trained.target_standard = recorded_standard(RunDirectory::open(run.path), true);
  }
  datasets::LoadOptions options = load_options(trained, dataset);
  options.accept = [&](const Shape& example) {
    require_pictures_fit(run.evaluation.images, example, dataset, run.graph_name);
  };
  options.accept_kind = [&](datasets::DataKind kind) {
    require_kind_fits(kind, Shape(run.evaluation.images.shape().extents().subspan(1)), dataset, run.graph_name);
  };
  if (options.grid) require_grid_of(dataset, *options.grid, run.path);
  const datasets::Splits data = datasets::load(dataset, data_dir, options);
  require_fit(run.evaluation, data.train, run.graph_name);
  if (run.is_run())
    require_order_of(recorded_output_names(RunDirectory::open(run.path), *network.task), *network.task, data.train,
                     run.graph_name);
  require_answers(data, *run.evaluation.task);
  if (dataset == run.settings.dataset)
    return {.splits = with_validation_part(data, run.settings), .held_out = run.settings.validation};
  if (const auto own = moved_data(RunDirectory::open(run.path), run.settings, data))
    return {.splits = *own, .held_out = run.settings.validation};
  // Other data have nothing to do with those that the run chose by.
  return {.splits = data};
}

std::string variables_hash(const std::filesystem::path& checkpoint) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : read_large_file(checkpoint)) {
    hash ^= static_cast<unsigned char>(byte);
    hash *= 0x100000001b3;
  }
  return formatted("%016llx", static_cast<unsigned long long>(hash));
}

std::string model_hash(const std::filesystem::path& model) {
  std::string text = variables_hash(model);
  for (const std::filesystem::path& file : importers::external_files(model)) text += "-" + variables_hash(file);
  return text;
}

}  // namespace miniqat::training
