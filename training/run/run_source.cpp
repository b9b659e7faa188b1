#include "training/run/run_source.h"

#include <cmath>
#include <cstdio>
#include <optional>

#include "core/files/safetensors.h"
#include "core/text/quote.h"
#include "training/model_source.h"
#include "training/run/integer_source.h"
#include "training/run/validation_part.h"
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
  std::error_code failure;
  if (!std::filesystem::exists(run.summary(), failure)) return false;
  const Json summary = read_json(run.summary());
  const auto complete = summary.find("complete");
  return complete != summary.end() && *complete == true;
}

/// The step that the run's checkpoint is of; none without a checkpoint.
std::optional<std::int64_t> checkpointed_step(const RunDirectory& run) {
  std::error_code failure;
  if (!std::filesystem::exists(run.checkpoint(), failure)) return {};
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
          .classes = static_cast<int>(network.logits.shape()[1]),
          .class_names = recorded_class_names(run.directory)};
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
  std::error_code failure;
  if (std::filesystem::exists(run.model_graph(), failure))
    settings.model_graph = run.model_graph().string();
  else if (!std::filesystem::exists(settings.model, failure))
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
  return trained_on(run, find_classifier(read_network(graph), graph));
}

datasets::Splits load_data(const RunSource& run, const std::string& dataset, const std::string& data_dir) {
  const std::string name = dataset.empty() ? run.settings.dataset : resolved_dataset(dataset);
  check_dataset(name, data_dir);
  const std::string graph = run.directory.eval_graph().string();
  const Classifier network = find_classifier(read_network(graph), graph);
  if (dataset.empty()) require_still_there(run.directory.path().string(), name);
  datasets::LoadOptions options = load_options(trained_on(run, network), name);
  options.accept = [&](const Shape& example) { require_pictures_fit(network.images, example, name, graph); };
  const bool is_own = name == run.settings.dataset;
  options.train_optional = options.whole_as_test = !is_own;
  const datasets::Splits data = datasets::load(name, data_dir.empty() ? run.settings.data_dir : data_dir, options);
  if (is_own) return with_validation_part(data, run.settings);
  return moved_data(run.directory, run.settings, data).value_or(data);
}

integer::Grid recorded_input(const RunSource& run) {
  const Json scale = recorded_of_data(run.directory, "input_scale");
  std::int32_t zero = 0;
  if (scale.is_number() && std::isfinite(scale.get<float>()) &&
      integer_from_json(recorded_of_data(run.directory, "input_zero_point"), zero))
    return {.scale = scale.get<float>(), .zero_point = zero, .bits = 8};
  return grid_of(load_data(run, {}, {}).test);
}

std::optional<double> recorded_accuracy(const RunSource& run) {
  if (run.checkpoint != run.directory.checkpoint() || !std::filesystem::exists(run.directory.summary())) return {};
  const Json summary = read_json(run.directory.summary());
  const auto accuracy = summary.find("test_accuracy");
  if (accuracy == summary.end() || !accuracy->is_number()) return {};
  return accuracy->get<double>();
}

}  // namespace miniqat::training
