#include "training/run/run_source.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <set>

#include "core/files/files.h"
#include "core/graph/source_ops.h"
#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "datasets/known_datasets.h"
#include "importers/onnx/import.h"
#include "quantize/fake_quant.h"
#include "quantize/quantizers.h"
#include "training/run/data_of_run.h"
#include "training/run/integer_source.h"
#include "training/settings/settings.h"

namespace miniqat::training {
namespace {

/// The step that a file of variables is of; none where it names none. (Reading it all is what the caller does next.)
std::optional<std::int64_t> step_of(const std::filesystem::path& file) {
  const Safetensors content = read_safetensors(file);
  const auto step = content.tensors.find("session:step");
  if (step == content.tensors.end() || step->second.dtype() != DType::kInt64 || step->second.elements() != 1) return {};
  return *step->second.data<std::int64_t>();
}

bool is_complete(const RunDirectory& run) {
  const Json summary = json_if_there(run.summary());
  return summary.is_object() && summary.value("complete", false);
}

/// The step that the run's checkpoint is of; none without a checkpoint.
std::optional<std::int64_t> checkpointed_step(const RunDirectory& run) {
  if (!is_there(run.checkpoint())) return {};
  const std::optional<std::int64_t> step = step_of(run.checkpoint());
  if (!step) fail(run.checkpoint().string(), ": \"session:step\" is missing");
  return step;
}

bool dampens(const RunDirectory& run) {
  const Json config = read_json(run.config());
  return config.is_object() && config.value("dampening", Json(0)) > 0;
}

std::string how_to_go_on(const RunDirectory& run, std::optional<std::int64_t> step) {
  const std::string failure = run.metrics().failure_after(step.value_or(0));
  return failure.empty() ? " (miniqat train --resume goes on)"
                         : concat(" (", failure, "; ", after_non_finite(dampens(run)), ")");
}

std::string state_of_unfinished(const RunDirectory& run, std::optional<std::int64_t> step) {
  const std::string place = step ? concat("its checkpoint is of step ", *step) : "it has no checkpoint yet";
  return concat("the run in ", run.path().string(), " is unfinished: ", place, how_to_go_on(run, step));
}

std::string note_on(const RunDirectory& run, std::optional<std::int64_t> step) {
  return "note: " + state_of_unfinished(run, step);
}

TrainedOn trained_on(const RunSource& run, const Classifier& network) {
  return {.settings = run.settings,
          .images = network.images.shape(),
          .classes = network.task == &classification() ? static_cast<int>(network.outputs()) : 0,
          .outputs = network.outputs(),
          .class_names = recorded_names(run.directory, "class_names"),
          .input_names = recorded_names(run.directory, "input_names"),
          .standard = recorded_standard(run.directory, false),
          .target_standard = recorded_standard(run.directory, true)};
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

constexpr std::size_t kShown = 8;

std::string list_text(const std::string& what, const std::vector<std::string>& names, bool all) {
  const std::size_t shown = all ? names.size() : std::min(names.size(), kShown);
  const std::string head = concat("  ", what, std::string(9 - what.size(), ' '));
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) text += head + printable(names[i]) + "\n";
  if (shown < names.size()) text += concat(head, "... and ", names.size() - shown, " more (--verbose lists all)\n");
  return text;
}

/// Takes out the ranges of weights, which are those of folded weights in the one network and of raw ones in the other,
/// if the run folds batch norms late and the graph does not, or the reverse. Returns their names.
std::vector<std::string> drop_refolded(const RunDirectory& run, const Graph& graph, NamedTensors& tensors) {
  const quantize::Quantization theirs = quantization_of(run);
  if (theirs.is_float() || theirs.late == quantize::quantization_of(graph).late) return {};
  std::vector<std::string> dropped;
  for (const Node* node : graph.nodes()) {
    if (node->as<quantize::FakeQuant>() == nullptr || !quantize::quantizes_weights(*node)) continue;
    for (const int end : {1, 2})
      if (const std::string& name = node->input(end).node->name(); tensors.erase(name) > 0) dropped.push_back(name);
  }
  return dropped;
}

/// The numbers of the variables do not depend on the size of the pictures or the steps; a model that leaves it open
/// gets the graph's.
NamedTensors onnx_variables(const std::filesystem::path& path, const Graph& graph) {
  importers::ImportOptions options{.keeps_size = true};
  for (const Node* node : graph.nodes()) {
    const Shape& shape = node->output_specs()[0].shape;
    if (node->as<Placeholder>() == nullptr || shape.rank() < 3) continue;
    options.height = shape[1];
    options.width = shape[2];
  }
  return importers::import_onnx(path, options).variables;
}

}  // namespace

std::string after_non_finite(bool dampens) {
  return concat("--resume would come to the same: begin anew with --overwrite and, say, a lower --learning-rate",
                dampens ? " or --dampening" : "");
}

std::string unfinished_note(const RunDirectory& run) {
  return is_complete(run) ? "" : note_on(run, checkpointed_step(run));
}

void require_complete(const RunDirectory& run) {
  if (!is_complete(run)) fail(state_of_unfinished(run, checkpointed_step(run)));
}

TrainedVariables trained_variables(const std::filesystem::path& path) {
  std::error_code failure;
  if (!std::filesystem::is_directory(path, failure)) {
    if (step_of(path) == 0) fail(path.string(), " is the checkpoint of step 0: nothing has been trained yet");
    return {.file = path, .note = {}};
  }
  const RunDirectory run = RunDirectory::open(path);
  if (is_complete(run)) return {.file = run.checkpoint(), .note = {}};
  const std::optional<std::int64_t> step = checkpointed_step(run);
  if (step.value_or(0) == 0)
    fail("the run in ", path.string(), " has ",
         step ? "only the checkpoint of step 0, that of its beginning"
              : concat("no checkpoint yet: there is no ", run.checkpoint().string()),
         how_to_go_on(run, step));
  return {.file = run.checkpoint(), .note = note_on(run, step)};
}

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
  const std::filesystem::path config = source.directory.config();
  source.settings = recorded_settings(read_json(config), config.string());
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
  if (is_own) return with_validation_part(data, run.settings);
  if (lacks_answers(data.test, *network.task)) {
    for (datasets::Dataset* part : {&data.train, &data.test, data.validation ? &*data.validation : nullptr})
      if (part != nullptr && part->images.defined()) describe_outputs(trained, *part);
    return data;
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
  result.settings = recorded_settings(read_json(run.config()), run.config().string());
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
  start_from(settings.model, session);
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
  const datasets::Splits data = datasets::load(dataset, data_dir, options);
  require_fit(run.evaluation, data.train, run.graph_name);
  require_answers(data, *run.evaluation.task);
  if (dataset == run.settings.dataset)
    return {.splits = with_validation_part(data, run.settings), .held_out = run.settings.validation};
  if (const auto own = moved_data(RunDirectory::open(run.path), run.settings, data))
    return {.splits = *own, .held_out = run.settings.validation};
  // Other data have nothing to do with those that the run chose by.
  return {.splits = data};
}

std::vector<std::string> InitCheckpoint::anew() const {
  const std::set<std::string> unused(names.unused.begin(), names.unused.end());
  std::vector<std::string> both;
  std::ranges::copy_if(names.fresh, std::back_inserter(both), [&](const auto& name) { return unused.contains(name); });
  return both;
}

std::string InitCheckpoint::text(bool all) const {
  const std::vector<std::string> again = anew();
  // If all names match, there is nothing to look for.
  const bool all_match = names.fresh.empty() && names.unused.empty();
  std::string text =
      concat("From ", printable(source.string()), ": ", counted(names.restored.size(), "variable"), " restored, ",
             names.fresh.size(), " new, ", names.unused.size(), " unused.\n") +
      (again.empty()
           ? ""
           : concat("  ", counted(again.size(), "range"),
                    " of another shape or folding (new and unused) start anew from the first batch: ", again.front(),
                    again.size() == 1 ? "" : ", ...", "\n")) +
      (all_match && !all ? "" : list_text("restored", names.restored, all)) + list_text("new", names.fresh, all) +
      list_text("unused", names.unused, all);
  text.pop_back();
  return text;
}

nlohmann::ordered_json InitCheckpoint::json() const {
  nlohmann::ordered_json json = {
      {"source", source.string()}, {"restored", names.restored}, {"new", names.fresh}, {"unused", names.unused}};
  if (const std::vector<std::string> again = anew(); !again.empty()) json["anew"] = again;
  return json;
}

InitCheckpoint start_from(const std::filesystem::path& path, Session& session) {
  InitCheckpoint start{.source = {}, .names = {}};
  Safetensors content;
  if (is_onnx_file(path.string())) {
    start.source = path;
    content.tensors = onnx_variables(path, session.graph());
  } else {
    TrainedVariables variables = trained_variables(path);
    start.source = variables.file;
    start.note = std::move(variables.note);
    content = read_safetensors(start.source);
  }
  const std::string source = start.source.string();
  std::vector<std::string> refolded;
  std::error_code failure;
  if (std::filesystem::is_directory(path, failure))
    refolded = drop_refolded(RunDirectory::open(path), session.graph(), content.tensors);
  start.names = session.restore(content, Session::Restore::kByName, source);
  start.names.unused.insert(start.names.unused.end(), refolded.begin(), refolded.end());
  std::ranges::sort(start.names.unused);
  // A network without variables needs none, of an ONNX model without any.
  const bool nothing_to_do = is_onnx_file(path.string()) && start.names.fresh.empty() && start.names.unused.empty();
  if (start.names.restored.empty() && !nothing_to_do)
    fail(source, ": no tensor has the name of a variable of this model");
  return start;
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
