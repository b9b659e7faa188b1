// Every registered op proves itself on its samples (tests/op_samples.h): gradients, fast against reference, threads,
// JSON and refused shapes. An op without samples fails.

#include "core/graph/registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "core/engine/session.h"
#include "core/graph/graph_json.h"
#include "core/graph/op_queries.h"
#include "core/graph/source_ops.h"
#include "core/tensors/random.h"
#include "core/threads/parallel.h"
#include "layers/layers.h"
#include "quantize/fake_quant.h"
#include "quantize/quantize.h"
#include "tests/gradient_check.h"
#include "tests/op_samples.h"

namespace miniqat::testing::registry_test {

void PrintTo(const OpSample& sample, std::ostream* stream) { *stream << sample.type << " \"" << sample.label << '"'; }
void PrintTo(const BadOpSample& sample, std::ostream* stream) {
  *stream << sample.type << " \"" << sample.label << '"';
}

namespace {

/// "Conv2D_stride_2_SAME": gtest takes letters, digits and underscores only.
template <class Sample>
std::string test_name(const ::testing::TestParamInfo<Sample>& info) {
  std::string name;
  for (const char c : info.param.type + "_" + info.param.label) {
    if (std::isalnum(static_cast<unsigned char>(c)))
      name += c;
    else if (name.back() != '_')
      name += '_';
  }
  return name;
}

void register_all() {
  layers::register_ops();
  quantize::register_ops();
}

constexpr const char* kNode = "scope/op";

std::string input_name(std::size_t k) { return concat("x", k); }

std::string in_quotes(const std::string& name) { return '"' + name + '"'; }

/// The JSON of a graph that has the inputs as Placeholders (or Variables) x0, x1, ... and the op on them.
/// With `copy_fed` it sees the float Placeholders through an Add of 0: its inputs are then tensors of the plan, which
/// may run the op in place and give their memory away as soon as traits() say that backward does not read them.
std::string graph_text(const std::string& type, const std::string& attributes, const std::vector<TensorSpec>& inputs,
                       const std::vector<int>& variables = {}, bool copy_fed = false) {
  std::string nodes, names;
  if (copy_fed) nodes = "{\"name\": \"zero\", \"op\": \"Constant\"},\n";
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    std::string name = input_name(k);
    const bool is_variable = std::ranges::find(variables, static_cast<int>(k)) != variables.end();
    nodes += concat(R"({"name": )", in_quotes(name), R"(, "op": )", in_quotes(is_variable ? "Variable" : "Placeholder"),
                    R"(, "attrs": {"shape": )", inputs[k].shape);
    if (!is_variable) nodes += concat(R"(, "dtype": ")", name_of(inputs[k].dtype), '"');
    nodes += "}},\n";
    if (copy_fed && !is_variable && inputs[k].dtype == DType::kFloat32) {
      nodes += concat(R"({"name": )", in_quotes(name + "/copy"), R"(, "op": "Add", "inputs": [)", in_quotes(name),
                      ", \"zero\"]},\n");
      name += "/copy";
    }
    names += (k == 0 ? "" : ", ") + in_quotes(name);
  }
  return concat(R"({"format": "miniqat.graph", "version": 1, "nodes": [)", nodes, R"({"name": )", in_quotes(kNode),
                R"(, "op": )", in_quotes(type), R"(, "inputs": [)", names, R"(], "attrs": )", attributes,
                R"(}], "outputs": [)", in_quotes(kNode), "]}");
}

Tensor drawn(const OpSample& sample, const TensorSpec& spec, std::size_t index) {
  const std::uint64_t seed = mix(hash_text(sample.type + sample.label), index);
  const bool given = index < sample.values.size() && !sample.values[index].empty();
  if (spec.dtype == DType::kFloat32 && !given) return distinct_values(spec.shape, sample.low, sample.high, seed);
  Tensor tensor(spec);
  Random random(seed);
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    if (spec.dtype == DType::kFloat32)
      tensor.data<float>()[i] = static_cast<float>(sample.values[index].at(i));
    else
      tensor.data<std::int32_t>()[i] = given ? static_cast<std::int32_t>(sample.values[index].at(i))
                                             : static_cast<std::int32_t>(std::floor(random.uniform(
                                                   static_cast<float>(sample.low), static_cast<float>(sample.high))));
  }
  return tensor;
}

Graph sample_graph(const OpSample& sample) {
  register_all();
  return graph_from_json(graph_text(sample.type, sample.attributes, sample.inputs, sample.variables, true), "sample");
}

/// A sample in a graph, with an objective to differentiate (none when the op has no float output) and its inputs'
/// values.
struct Bench {
  Bench(const OpSample& sample, Graph from) : graph(std::move(from)), op(&graph.at(kNode)) {
    std::vector<Output> sources;
    for (std::size_t k = 0; k < sample.inputs.size(); ++k) sources.push_back(graph.at(input_name(k)).output());
    if (sources.empty()) sources.push_back(op->output());
    for (std::size_t k = 0; k < sources.size(); ++k) {
      const Output source = sources[k];
      const bool is_variable = source.node->as<Variable>() != nullptr;
      if (source.node->as<Placeholder>())
        feeds.emplace_back(source, drawn(sample, source.spec(), k));
      else if (is_variable)
        variables[source.node->name()] = drawn(sample, source.spec(), k);
      if (source.spec().dtype == DType::kFloat32 && (is_variable || source.node->as<Placeholder>()) && !excluded(k))
        targets.push_back(source);
    }
    for (std::size_t k = 0; k < op->output_specs().size(); ++k) {
      outputs.push_back(op->output(static_cast<int>(k)));
      has_objective = has_objective || outputs.back().spec().dtype == DType::kFloat32;
    }
    if (has_objective) objective = weighted(graph, outputs);
  }

  explicit Bench(const OpSample& sample) : Bench(sample, sample_graph(sample)) {}

  /// Whether the op has a gradient for that input of the sample.
  bool differentiable(const OpSample& sample, std::size_t input) const {
    return has_objective && sample.inputs[input].dtype == DType::kFloat32 && !excluded(input);
  }

  bool excluded(std::size_t input) const {
    const std::vector<int> none = inputs_without_gradient(op->op());
    return std::ranges::find(none, static_cast<int>(input)) != none.end();
  }

  Graph graph;
  const Node* op;
  Feeds feeds;
  NamedTensors variables;
  std::vector<Output> targets;
  std::vector<Output> outputs;
  bool has_objective = false;
  Output objective;
};

/// What one run computes, by a name for messages.
using Results = std::vector<std::pair<std::string, Tensor>>;

RunResult run(Session& session, const Bench& bench, const RunRequest& request) {
  for (const auto& [name, value] : bench.variables) session.set_variable(name, value);
  return session.run(request, bench.feeds);
}

/// Outputs, updated variables and gradients. The gradients come from a run of their own, without fetches: a fetched
/// tensor stays alive, which would hide that backward reads a tensor that traits() don't name.
Results results(Bench& bench, bool training, Backend backend) {
  Results named;
  Session forward(bench.graph, {.backend = backend});
  const RunResult ran =
      run(forward, bench, {.fetches = bench.outputs, .gradients_of = {}, .gradient_targets = {}, .training = training});
  for (std::size_t k = 0; k < ran.fetched.size(); ++k) named.emplace_back(concat("output ", k), ran.fetched[k]);
  for (const auto& [name, value] : forward.variables()) named.emplace_back("variable " + name, value.clone());
  if (!bench.has_objective || bench.targets.empty()) return named;
  Session backward(bench.graph, {.backend = backend});
  const RunResult differentiated =
      run(backward, bench,
          {.fetches = {}, .gradients_of = bench.objective, .gradient_targets = bench.targets, .training = training});
  for (std::size_t k = 0; k < bench.targets.size(); ++k)
    named.emplace_back(concat("the gradient of ", bench.targets[k].name()), differentiated.gradients[k]);
  return named;
}

void expect_agreement(const Results& got, const Results& wanted, double tolerance, const OpSample& sample) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t k = 0; k < got.size(); ++k) {
    ASSERT_EQ(got[k].first, wanted[k].first);
    if (got[k].second.dtype() == DType::kInt32) {
      EXPECT_TRUE(std::ranges::equal(got[k].second.values<std::int32_t>(), wanted[k].second.values<std::int32_t>()));
      continue;
    }
    const std::string text = difference(got[k].second, wanted[k].second, tolerance);
    EXPECT_EQ(text, "") << sample.type << " \"" << sample.label << "\": " << got[k].first << ' ' << text;
  }
}

/// Sets a number of threads until the end of a scope.
class ThreadCount {
 public:
  explicit ThreadCount(int count) : before_(thread_count()) { set_thread_count(count); }
  ~ThreadCount() { set_thread_count(before_); }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  int before_;
};

/// On one thread, but for ThreadsAgree: threads that wait for each other on a busy machine take most of the time.
class OpSampleTest : public ::testing::TestWithParam<OpSample> {
  ThreadCount one_{1};
};

/// The float inputs for which an op may say that there is no gradient (OpTraits::no_gradient), and why.
const std::map<std::pair<std::string, int>, std::string> kWithoutGradient = {
    {{"BatchNorm", 3}, "moving statistics follow those of the batch"},
    {{"BatchNorm", 4}, "moving statistics follow those of the batch"},
    {{"BatchNormCorrection", 3}, "moving statistics follow those of the batch"},
    {{"BatchNormCorrection", 4}, "moving statistics follow those of the batch"},
    {{"BatchNormScale", 0}, "the two factors cancel"},
    {{"BatchNormScale", 1}, "the two factors cancel"},
    {{"MeanSquaredError", 1}, "a target is given"},
    {{"Huber", 1}, "a target is given"},
    {{"SigmoidCrossEntropy", 1}, "a target is given"},
    {{"FakeQuant", 1}, "an observed range follows x"},
    {{"FakeQuant", 2}, "an observed range follows x"},
};

/// Whether central differences are compared with the gradient of that input.
bool checks_gradient(const OpSample& sample, const Bench& bench, std::size_t input) {
  return bench.differentiable(sample, input) && !sample.unchecked_gradients.contains(static_cast<int>(input));
}

TEST_P(OpSampleTest, GradientsMatchCentralDifferences) {
  const OpSample& sample = GetParam();
  Bench bench(sample);
  std::vector<Output> checked;
  std::int64_t elements = bench.has_objective ? bench.objective.shape().elements() : 0;
  for (std::size_t k = 0; k < sample.inputs.size(); ++k) {
    if (sample.inputs[k].dtype != DType::kFloat32) continue;
    const int input = static_cast<int>(k);
    if (bench.excluded(k))
      EXPECT_TRUE(kWithoutGradient.contains({sample.type, input})) << "input " << k << " has no gradient: why?";
    else if (checks_gradient(sample, bench, k))
      checked.push_back(bench.graph.at(input_name(k)).output());
    elements += sample.inputs[k].shape.elements();
  }
  if (!bench.has_objective) {
    for (const Output output : bench.outputs) EXPECT_NE(output.spec().dtype, DType::kFloat32);
    return;
  }
  if (checked.empty()) return;
  constexpr std::int64_t kLarge = 5000;
  const std::string text = check_gradients({.graph = bench.graph,
                                            .objective = bench.objective,
                                            .targets = checked,
                                            .feeds = bench.feeds,
                                            .variables = bench.variables,
                                            .training = sample.training,
                                            .places = elements > kLarge ? 2 : 40});
  EXPECT_EQ(text, "") << sample.type << " \"" << sample.label << "\": " << text;
}

TEST_P(OpSampleTest, FastMatchesReference) {
  Bench bench(GetParam());
  const auto fast = results(bench, GetParam().training, Backend::kFast);
  const auto reference = results(bench, GetParam().training, Backend::kReference);
  expect_agreement(fast, reference, 1e-4, GetParam());
}

TEST_P(OpSampleTest, ThreadsAgree) {
  Bench bench(GetParam());
  const auto with = [&](int threads) {
    const ThreadCount count(threads);
    return results(bench, GetParam().training, Backend::kFast);
  };
  expect_agreement(with(2), with(1), 1e-5, GetParam());
}

TEST_P(OpSampleTest, JsonRoundTripKeepsTextAndBits) {
  Graph graph = sample_graph(GetParam());
  const std::string text = graph_to_json(graph);
  ASSERT_EQ(graph_to_json(graph_from_json(text, "round trip")), text);
  Bench bench(GetParam(), std::move(graph));
  Bench again(GetParam(), graph_from_json(text, "round trip"));
  const auto before = results(bench, GetParam().training, Backend::kFast);
  const auto after = results(again, GetParam().training, Backend::kFast);
  ASSERT_EQ(before.size(), after.size());
  for (std::size_t k = 0; k < before.size(); ++k) {
    const auto bytes = [](const Tensor& tensor) {
      return std::span(static_cast<const std::byte*>(tensor.raw()), tensor.bytes());
    };
    EXPECT_TRUE(std::ranges::equal(bytes(before[k].second), bytes(after[k].second))) << before[k].first;
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, OpSampleTest, ::testing::ValuesIn(all_samples()), test_name<OpSample>);

class BadOpSampleTest : public ::testing::TestWithParam<BadOpSample> {};

TEST_P(BadOpSampleTest, IsRefusedWithAMessageThatNamesTheNode) {
  register_all();
  const BadOpSample& sample = GetParam();
  try {
    graph_from_json(graph_text(sample.type, sample.attributes, sample.inputs), "sample");
    FAIL() << sample.type << " \"" << sample.label << "\" was accepted";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find(sample.message), std::string::npos) << text << "\nlacks: " << sample.message;
    EXPECT_NE(text.find(sample.type), std::string::npos) << text;
    EXPECT_NE(text.find(kNode), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, BadOpSampleTest, ::testing::ValuesIn(all_bad_samples()), test_name<BadOpSample>);

/// A sample may leave gradients unchecked, but not all samples of an op the same one.
TEST(RegistryTest, EveryGradientIsCheckedInASample) {
  std::map<std::pair<std::string, std::size_t>, bool> checked;
  for (const OpSample& sample : all_samples()) {
    const Bench bench(sample);
    for (std::size_t k = 0; k < sample.inputs.size(); ++k)
      if (bench.differentiable(sample, k)) checked[{sample.type, k}] |= checks_gradient(sample, bench, k);
  }
  ASSERT_FALSE(checked.empty());
  for (const auto& [gradient, is_checked] : checked)
    EXPECT_TRUE(is_checked) << "no sample of " << gradient.first << " checks the gradient of input " << gradient.second;
}

TEST(RegistryTest, EveryOpHasSamplesAndBadSamples) {
  register_all();
  const auto samples = all_samples();
  const auto bad_samples = all_bad_samples();
  ASSERT_FALSE(registered_ops().empty());
  for (const std::string& type : registered_ops()) {
    EXPECT_TRUE(std::ranges::find(samples, type, &OpSample::type) != samples.end()) << type << " has no sample";
    EXPECT_TRUE(std::ranges::find(bad_samples, type, &BadOpSample::type) != bad_samples.end())
        << type << " has no bad sample";
  }
}

}  // namespace
}  // namespace miniqat::testing::registry_test
