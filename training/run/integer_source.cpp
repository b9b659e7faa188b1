#include "training/run/integer_source.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "core/engine/session.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "datasets/loader.h"
#include "quantize/convert/convert.h"
#include "quantize/fake_quant.h"
#include "training/model_source.h"
#include "training/run/data_of_run.h"
#include "training/run/output_names.h"
#include "training/settings/settings.h"
#include "training/settings/train_settings.h"

namespace miniqat::training {
namespace {

/// A file name may hold any bytes, a model's name takes UTF-8 without control characters.
std::string plain_name(const std::filesystem::path& path) {
  using Json = nlohmann::json;
  std::string name = path.filename().string();
  for (char& c : name)
    if (static_cast<unsigned char>(c) < ' ' || c == 127) c = '_';
  return Json::parse(Json(name).dump(-1, ' ', false, Json::error_handler_t::replace)).get<std::string>();
}

/// Runs of earlier versions keep all outputs of their model; the first was trained.
Graph logits_only(Graph graph) {
  if (graph.outputs().size() > 1) graph.set_outputs({graph.outputs().front()});
  return graph;
}

/// The run's own settings that may have left a tensor in float: "--scope conv1 and --float-pools"; "" without such.
std::string flags_without_ranges(const RunDirectory& run) {
  const TrainSettings settings = recorded_settings(read_json(run.config()), run.config().string());
  std::string flags;
  if (!settings.rewrite.scope.empty()) flags = concat("--scope ", shell_quoted(settings.rewrite.scope));
  if (settings.rewrite.float_pools) flags += flags.empty() ? "--float-pools" : " and --float-pools";
  return flags;
}

}  // namespace

std::optional<integer::Grid> grid_of(const datasets::Dataset& dataset) {
  if (!dataset.has_pictures()) return {};
  return integer::Grid{.scale = dataset.scale, .zero_point = dataset.zero_point, .bits = 8};
}

namespace {

/// The order of classes is that of their logits; any other task answers with the numbers themselves.
quantize::ConvertOptions options_of(const Task& task, const std::optional<integer::Grid>& input) {
  return {.input = input, .leaves_out_softmax = &task == &classification()};
}

integer::Model convert_graph(const RunDirectory& run, const Task& task, const std::filesystem::path& checkpoint,
                             const std::optional<integer::Grid>& input) {
  const std::string source = run.eval_graph().string();
  Graph graph = logits_only(read_network(source));
  // A tensor of another network is refused in the same words as by `eval`.
  Session session(graph);
  session.restore(read_safetensors(checkpoint), Session::Restore::kVariables, checkpoint.string());
  const std::filesystem::path path = run.path().has_filename() ? run.path() : run.path().parent_path();
  try {
    quantize::ConvertOptions options = options_of(task, input);
    options.name = plain_name(path);
    return quantize::convert(graph, session.variables(), options);
  } catch (const quantize::PictureNotQuantized& error) {
    const std::string flags = flags_without_ranges(run);
    fail(source, ": ", error.what(), flags.empty() ? "" : concat(" and without ", flags));
  } catch (const quantize::NotQuantized& error) {
    const std::string flags = flags_without_ranges(run);
    fail(source, ": ", error.what(), "; ",
         flags.empty() ? "`miniqat rewrite --report` says why it was left as it is"
                       : concat("train, or `miniqat calibrate`, without ", flags));
  } catch (const Error& error) {
    fail(source, ": ", error.what());
  }
}

std::optional<Standard> standard_in(const RunDirectory& run, bool of_targets) {
  const std::shared_ptr<const Standard> recorded = recorded_standard(run, of_targets);
  return recorded ? std::optional(*recorded) : std::nullopt;
}

}  // namespace

integer::Model convert_run(const RunDirectory& run, const std::filesystem::path& checkpoint,
                           const std::optional<integer::Grid>& input) {
  const TrainSettings settings = recorded_settings(read_json(run.config()), run.config().string());
  const Task& task = task_of(settings);
  integer::Model model = convert_graph(run, task, checkpoint, input);
  if (&task != &classification()) model.task = task.name;
  std::vector<std::string> names = recorded_output_names(run, task);
  if (std::ssize(names) == model.tensor(model.output).shape.elements()) model.class_names = std::move(names);
  model.input_standard = standard_in(run, false);
  if (&task == &regression()) model.output_standard = standard_in(run, true);
  try {
    model.check();
  } catch (const Error& error) {
    fail(run.path().string(), ": ", error.what());
  }
  return model;
}

namespace {

std::string why_refused(const Graph& graph, const NamedTensors& variables, const quantize::ConvertOptions& options) {
  try {
    quantize::convert(logits_only(graph.clone()), variables, options);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

std::string why_no_integers(const Graph& graph, const Task& task, const NamedTensors& variables,
                            const std::optional<integer::Grid>& input) {
  return why_refused(graph, variables, options_of(task, input));
}

std::string why_never_integers(const Graph& graph, const Task& task, const NamedTensors& variables,
                               const std::optional<integer::Grid>& input) {
  NamedTensors ranged = variables;
  for (const Node* node : graph.nodes()) {
    if (node->as<quantize::FakeQuant>() == nullptr) continue;
    for (const auto& [end, value] : {std::pair{1, -1.0f}, {2, 1.0f}}) {
      const auto found = ranged.find(node->input(end).node->name());
      if (found == ranged.end()) continue;
      found->second = Tensor(found->second.shape(), DType::kFloat32);
      std::ranges::fill(found->second.values<float>(), value);
    }
  }
  quantize::ConvertOptions options = options_of(task, input);
  options.ranges_to_come = true;
  return why_refused(graph, ranged, options);
}

void require_pictures_fit(const integer::Model& model, const datasets::Dataset& dataset, const std::string& source) {
  require_pictures_fit(model, dataset.example_shape(), dataset.name, source);
}

void require_pictures_fit(const integer::Model& model, const Shape& example, const std::string& dataset,
                          const std::string& source) {
  const Shape& images = model.tensor(model.input).shape;
  if (images != example)
    fail(source, ": the input is ", images, ", the ", example.rank() == 3 ? "pictures" : "examples", " of ", dataset,
         " are ", example);
}

void require_fit(const integer::Model& model, const Task& task, const datasets::Dataset& dataset,
                 const std::string& source) {
  require_pictures_fit(model, dataset, source);
  const Shape& outputs = model.tensor(model.output).shape;
  if (const std::int64_t needed = task.outputs_for(dataset); outputs.elements() != needed)
    fail(source, ": the ", task.outputs, " are ", outputs, ", ", dataset.name, " needs ", Shape{needed});
  require_order_of(model.class_names, task, dataset, source);
}

Tensor as_input(const CodedTensor& examples, const integer::Grid& input) {
  Tensor integers(examples.shape(), DType::kUInt8);
  std::uint8_t* to = integers.data<std::uint8_t>();
  if (!examples.grid) {
    std::ranges::transform(examples.values<float>(), to, [&](float x) { return integer::quantize(input, x); });
    return integers;
  }
  const integer::Grid bytes = {
      .scale = examples.grid->scale, .zero_point = static_cast<std::int32_t>(examples.grid->zero_point), .bits = 8};
  const std::array<std::uint8_t, 256> table = integer::input_table(bytes, input);
  std::ranges::transform(examples.values<std::uint8_t>(), to, [&](std::uint8_t byte) { return table[byte]; });
  return integers;
}

Tensor input_batch(const datasets::Dataset& dataset, const integer::Grid& input, std::int64_t first,
                   std::int64_t count) {
  Tensor integers;
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), first);
  const datasets::Dataset some = datasets::examples_at(dataset, numbers);
  datasets::for_each_batch(some, count,
                           [&](const datasets::Examples& batch) { integers = as_input(batch.images, input); });
  return integers;
}

}  // namespace miniqat::training
