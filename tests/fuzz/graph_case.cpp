#include "tests/fuzz/graph_case.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "bench/judge/step_judge.h"
#include "core/engine/session.h"
#include "core/graph/graph_json.h"
#include "core/graph/losses.h"
#include "core/graph/op_queries.h"
#include "core/graph/source_ops.h"
#include "core/kernels/instruction_set.h"
#include "core/tensors/random.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"
#include "layers/layers.h"
#include "quantize/quantizers.h"

namespace miniqat::fuzz {
namespace {

constexpr const char* kLoss = "loss";

/// The fewest classes of a loss that reads these labels.
std::int64_t classes_of(const Node& labels) {
  std::int64_t classes = 1 << 20;
  for (const Node* loss : losses_with_target(labels.output(), TargetValues::kClasses))
    classes = std::min(classes, prediction_of(*loss).shape()[1]);
  return classes;
}

Tensor made_up(const Node& placeholder, std::uint64_t seed, int run) {
  const TensorSpec& spec = placeholder.output_specs()[0];
  Tensor tensor(spec);
  Random random(mix(mix(seed, hash_text(placeholder.name())), static_cast<std::uint64_t>(run)));
  if (spec.dtype == DType::kInt32)
    for (std::int32_t& value : tensor.values<std::int32_t>())
      value = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(classes_of(placeholder))));
  else
    for (float& value : tensor.values<float>()) value = random.uniform(-1, 1);
  if (!losses_with_target(placeholder.output(), TargetValues::kProbabilities).empty())
    for (float& value : tensor.values<float>()) value = std::abs(value);
  return tensor;
}

/// Of run 0 the case's own values, then new ones.
Feeds feeds_of(const GraphCase& test, const Graph& graph, int run) {
  Feeds feeds;
  for (const Node* node : graph.nodes()) {
    if (node->type() != "Placeholder") continue;
    const auto found = test.values.find(node->name());
    const bool given = found != test.values.end() && run == 0;
    feeds.emplace_back(node->output(), given ? found->second : made_up(*node, test.seed, run));
  }
  return feeds;
}

void set_variables(const GraphCase& test, Session& session) {
  for (const auto& [name, value] : session.variables())
    if (const auto found = test.values.find(name); found != test.values.end() && found->second.shape() == value.shape())
      session.set_variable(name, found->second);
}

RunRequest request_of(const GraphCase& test, const Graph& graph) {
  RunRequest request = {.training = test.training};
  const Node* loss = graph.find(kLoss);
  if (loss != nullptr) {
    request.gradients_of = loss->output();
    for (const Node* node : graph.nodes()) {
      const auto* variable = node->as<Variable>();
      const bool fed = node->type() == "Placeholder" && node->output_specs()[0].dtype == DType::kFloat32;
      if (fed || (variable != nullptr && variable->trainable)) request.gradient_targets.push_back(node->output());
    }
  }
  if (test.fetches_all) {
    for (const Node* node : graph.nodes())
      if (!node->inputs().empty()) request.fetches.push_back(node->output());
  } else if (loss == nullptr) {
    request.fetches = graph.outputs();
  }
  return request;
}

bool same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::ranges::equal(a, b, [](const Tensor& x, const Tensor& y) {
    const auto bytes = [](const Tensor& tensor) {
      return std::span(static_cast<const std::byte*>(tensor.raw()), tensor.bytes());
    };
    return std::ranges::equal(bytes(x), bytes(y));
  });
}

/// Runs the case once more, unobserved: the same bits must come out.
std::optional<Finding> repeat(const GraphCase& test, Graph& graph, const std::vector<RunResult>& before) {
  Session session(graph, {.seed = test.seed, .arithmetic = test.arithmetic(), .rounding = test.rounding()});
  set_variables(test, session);
  session.set_quantization_step(test.quantization_step);
  const RunRequest request = request_of(test, graph);
  for (int run = 0; run < test.runs; ++run) {
    const RunResult result = session.run(request, feeds_of(test, graph, run));
    if (!same_bits(result.fetched, before[static_cast<std::size_t>(run)].fetched))
      return Finding{"the same run again fetches other bits", "repeat", {}};
    for (std::size_t k = 0; k < result.gradients.size(); ++k)
      if (!same_bits({result.gradients[k]}, {before[static_cast<std::size_t>(run)].gradients[k]}))
        return Finding{
            concat("the same run again gives other bits: the gradient of ", request.gradient_targets[k].name()),
            "repeat",
            {}};
  }
  return std::nullopt;
}

/// Ops that round each number once, in the same way in either backend's loops. (Not Mul, but for the loss's: of two in
/// a row the factors may be multiplied first.)
bool rounds_once(const Node& node) {
  constexpr std::array<std::string_view, 11> kTypes = {"FakeQuant", "Add",     "Sub",      "BiasAdd", "Square", "Relu",
                                                       "Relu6",     "MaxPool", "Identity", "Reshape", "Concat"};
  return node.inputs().empty() || node.name().starts_with(kLoss) ||
         std::ranges::find(kTypes, node.type()) != kTypes.end();
}

/// StepJudge lets a tie of a quantizer go either way. Where nothing before it is rounded in more than one way, the
/// float32 reference loops must give the same bits (quantize/affine.h).
std::optional<Finding> judge_bits(const GraphCase& test) {
  const std::vector<Node*> nodes = test.graph.nodes();
  if (std::ranges::none_of(nodes, [](const Node* node) { return node->type() == "FakeQuant"; })) return {};
  if (!std::ranges::all_of(nodes, [](const Node* node) { return rounds_once(*node); })) return {};
  // Of what became equal by rounding any may be the largest.
  const bool one_gradient = std::ranges::none_of(nodes, [](const Node* node) { return node->type() == "MaxPool"; });
  Graph graph = with_loss(test);
  RunRequest request = request_of(test, graph);
  for (const Output& output : test.graph.outputs()) request.fetches.push_back(graph.output_at(output.name()));
  const auto session_on = [&](Backend backend) {
    auto session = std::make_unique<Session>(graph, SessionOptions{.seed = test.seed, .backend = backend});
    set_variables(test, *session);
    session->set_quantization_step(test.quantization_step);
    return session;
  };
  const auto fast = session_on(Backend::kFast), reference = session_on(Backend::kReference);
  for (int run = 0; run < test.runs; ++run) {
    const Feeds feeds = feeds_of(test, graph, run);
    const RunResult found = fast->run(request, feeds), wanted = reference->run(request, feeds);
    for (std::size_t k = 0; k < found.fetched.size(); ++k)
      if (!same_bits({found.fetched[k]}, {wanted.fetched[k]}))
        return Finding{
            concat("output ", request.fetches[k].name(), " has other bits than on the reference loops"), "bits", {}};
    for (std::size_t k = 0; one_gradient && k < found.gradients.size(); ++k)
      // (As numbers: zeros have any sign.)
      if (request.gradient_targets[k].node->type() == "Placeholder" &&
          !std::ranges::equal(found.gradients[k].values<float>(), wanted.gradients[k].values<float>()))
        return Finding{
            concat("the gradient of ", request.gradient_targets[k].name(), " differs from that of the reference loops"),
            "bits",
            {}};
    for (const auto& [name, value] : fast->variables())
      if (!same_bits({value}, {reference->variable(name)}))
        return Finding{concat("variable ", name, " has other bits than on the reference loops"), "bits", {}};
  }
  return {};
}

}  // namespace

GraphCase GraphCase::clone() const {
  return {.graph = graph.clone(),
          .values = values,
          .seed = seed,
          .threads = threads,
          .training = training,
          .runs = runs,
          .quantization_step = quantization_step,
          .fetches_all = fetches_all};
}

FactorRounding GraphCase::rounding() const {
  if (seed % 8 == 5 && has_int8_products() && arithmetic() == Arithmetic::kInteger)
    return FactorRounding::kGradientsToInt8;
  if (!has_bfloat16_products() || seed % 4 < 2) return FactorRounding::kNone;
  return seed % 8 == 3 ? FactorRounding::kGradientsToBfloat16 : FactorRounding::kAllToBfloat16;
}

std::string GraphCase::text() const {
  return concat(graph.size(), " nodes, ", name_of(isa_level()), ", ", threads, " threads, ",
                training ? "training" : "evaluation", ", quantization step ", quantization_step, ", ", runs, " runs",
                fetches_all ? ", everything fetched" : "",
                rounding() == FactorRounding::kNone              ? ""
                : rounding() == FactorRounding::kGradientsToInt8 ? ", gradients in int8"
                                                                 : ", in bfloat16");
}

Graph with_loss(const GraphCase& test) {
  Graph graph = test.graph.clone();
  if (graph.find(kLoss) != nullptr) return graph;
  std::vector<Output> rows;
  for (const Output& output : std::vector(graph.outputs())) {
    if (output.spec().dtype != DType::kFloat32) continue;
    const std::string name = concat(kLoss, rows.size());
    const Output weighted =
        layers::mul(graph, name, output, layers::placeholder(graph, name + "/weighting", output.shape()));
    rows.push_back(layers::reshape(graph, name + "/row", weighted, {.shape = {-1}}));
  }
  if (!rows.empty()) layers::concat(graph, kLoss, rows, {.axis = 0});
  return graph;
}

Feeds feeds_of_first_run(const GraphCase& test, const Graph& graph) { return feeds_of(test, graph, 0); }

std::optional<Finding> judge(const GraphCase& test, Counts* counts) {
  set_thread_count(test.threads);
  Graph graph = with_loss(test);
  Session session(graph, {.seed = test.seed, .arithmetic = test.arithmetic(), .rounding = test.rounding()});
  set_variables(test, session);
  session.set_quantization_step(test.quantization_step);
  const RunRequest request = request_of(test, graph);
  bench::StepJudge judge;
  session.set_observer(&judge);
  std::vector<RunResult> results;
  for (int run = 0; run < test.runs && judge.findings.empty(); ++run)
    results.push_back(session.run(request, feeds_of(test, graph, run)));
  if (counts != nullptr) {
    counts->steps += judge.steps;
    counts->compared += judge.compared;
    counts->vague += judge.vague;
  }
  if (judge.findings.empty()) {
    const std::optional<Finding> found = repeat(test, graph, results);
    return found ? found : judge_bits(test);
  }
  const bench::StepFinding& found = judge.findings.front();
  Finding finding{.text = found.text(),
                  .kind = concat(found.node->type(), ": ", found.what.substr(0, found.what.find(" ("))),
                  .nodes = {}};
  for (const Node* node : found.members) finding.nodes.push_back(node->name());
  return finding;
}

std::string save(const GraphCase& test, const std::filesystem::path& directory, const std::string& name) {
  std::filesystem::create_directories(directory);
  Graph graph = with_loss(test);
  Session session(graph, {.seed = test.seed});
  set_variables(test, session);
  Safetensors feeds, variables;
  for (const auto& [output, tensor] : feeds_of(test, graph, 0)) feeds.tensors[output.node->name()] = tensor;
  for (const auto& [variable, value] : session.variables()) variables.tensors[variable] = value;
  feeds.metadata = {{"seed", std::to_string(test.seed)},
                    {"threads", std::to_string(test.threads)},
                    {"training", test.training ? "1" : "0"},
                    {"runs", std::to_string(test.runs)},
                    {"quantization_step", std::to_string(test.quantization_step)},
                    {"fetches_all", test.fetches_all ? "1" : "0"},
                    {"instruction_set", std::string(name_of(isa_level()))}};
  const std::string stem = (directory / name).string();
  const auto nodes = graph.nodes();
  const bool counts_steps = std::ranges::any_of(nodes, [&](const Node* node) {
    return quantize::quant_delay_of(*node) || (test.training && quantize::freeze_delay_of(*node));
  });
  write_graph(stem + ".json", graph);
  write_safetensors(stem + ".feeds.safetensors", feeds);
  write_safetensors(stem + ".variables.safetensors", variables);
  if (test.rounding() != FactorRounding::kNone) return "(with rounded factors, which miniqat run has not)";
  return concat("MINIQAT_MAX_ISA=", name_of(isa_level()), " miniqat run --graph ", stem, ".json --feeds ", stem,
                ".feeds.safetensors --checkpoint ", stem, ".variables.safetensors --seed ", test.seed,
                test.training ? " --train" : "", counts_steps ? concat(" --step ", test.quantization_step) : "",
                graph.find(kLoss) != nullptr ? " --gradients-of loss" : "", " --threads ", test.threads,
                test.arithmetic() == Arithmetic::kInteger ? " --arithmetic integer" : "",
                " --out fast.safetensors   (beside --backend reference --precision float64 --threads 1)");
}

GraphCase load(const std::filesystem::path& path) {
  const std::string stem = std::filesystem::path(path).replace_extension().string();
  const Safetensors feeds = read_safetensors(stem + ".feeds.safetensors");
  const auto number = [&](const std::string& key) { return std::stoll(feeds.metadata.at(key)); };
  GraphCase test{.graph = read_graph(path), .values = feeds.tensors};
  for (const auto& [name, value] : read_safetensors(stem + ".variables.safetensors").tensors) test.values[name] = value;
  test.seed = std::stoull(feeds.metadata.at("seed"));
  test.threads = static_cast<int>(number("threads"));
  test.training = number("training") != 0;
  test.runs = static_cast<int>(number("runs"));
  test.quantization_step = number("quantization_step");
  test.fetches_all = number("fetches_all") != 0;
  return test;
}

}  // namespace miniqat::fuzz
