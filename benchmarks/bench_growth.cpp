// The cost of work on a graph against its size: rewrites, plans, sessions, checkpoints, conversion and exports. The
// graphs are chains of 250 to 2,000 layers, each a 1x1 convolution, batch norm and Relu. Also bits files of 1,000 to
// 8,000 patterns with wildcards of several kinds. `us/item` is the time for one layer or pattern: what is linear keeps
// it from size to size; at 2,000 layers, what is quadratic has eight times that of 250.
//
// Before anything is timed, the chains are rewritten, converted and counted. A piece of work that costs more than
// kMostGrowth times as much for each item at the largest size as at the smallest fails its benchmark: far more than
// caches explain, far less than a square.

#include <benchmark/benchmark.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/machine.h"
#include "core/engine/session.h"
#include "core/files/safetensors.h"
#include "core/graph/graph_json.h"
#include "core/text/error.h"
#include "exporters/c/source.h"
#include "exporters/json.h"
#include "exporters/onnx/onnx.h"
#include "exporters/tflite/tflite.h"
#include "integer/format/model_file.h"
#include "integer/model.h"
#include "layers/layers.h"
#include "quantize/convert/convert.h"
#include "quantize/quantize.h"
#include "quantize/quantizers.h"

namespace miniqat::benchmarks {
namespace {

/// One number for each of the layer's channels.
struct BatchNormVariables {
  Output gamma, beta, mean, variance;
};

using Normalise = std::function<Output(Graph&, const std::string& scope, Output x, const BatchNormVariables&)>;

Graph chain_of(int layers, const Normalise& normalise) {
  Graph graph;
  Output x = layers::placeholder(graph, "images", {1, 2, 2, 1});
  for (int i = 0; i < layers; ++i) {
    const std::string scope = concat("block", i, "/");
    const auto vector = [&](const char* name, double value, bool trainable) {
      return layers::variable(graph, scope + name, {1}, Initializer::constant(value), trainable);
    };
    const Output weights = layers::variable(graph, scope + "weights", {1, 1, 1, 1}, Initializer::constant(1));
    x = layers::conv2d(graph, scope + "Conv2D", x, weights);
    const Output gamma = vector("gamma", 1, true), beta = vector("beta", 0.5, true);
    const Output mean = vector("moving_mean", 0, false), variance = vector("moving_variance", 1, false);
    x = layers::relu(graph, scope + "Relu", normalise(graph, scope, x, {gamma, beta, mean, variance}));
  }
  graph.set_outputs({x});
  return graph;
}

/// `layers` times a 1x1 convolution, a batch norm and a Relu on images [1, 2, 2, 1], from "images" on: next to no
/// arithmetic, so that what is timed is the work on the graph.
Graph chain_of_layers(int layers) {
  return chain_of(layers, [](Graph& graph, const std::string& scope, Output x, const BatchNormVariables& v) {
    return layers::batch_norm(graph, scope + "BatchNorm", x, v.gamma, v.beta, v.mean, v.variance);
  });
}

/// The same convolutions, with batch norms spelled out in primitive ops on stored statistics.
Graph chain_of_spelled_out_layers(int layers) {
  return chain_of(layers, [](Graph& graph, const std::string& scope, Output x, const BatchNormVariables& v) {
    const Output epsilon = layers::constant(graph, scope + "epsilon", {}, {0.001});
    const Output variance = layers::add(graph, scope + "variance", v.variance, epsilon);
    const Output scale = layers::mul(graph, scope + "scale", layers::rsqrt(graph, scope + "Rsqrt", variance), v.gamma);
    const Output centred = layers::sub(graph, scope + "Sub", x, v.mean);
    return layers::add(graph, scope + "Add", layers::mul(graph, scope + "Mul", centred, scale), v.beta);
  });
}

constexpr double kMostGrowth = 4;
constexpr int kRuns = 3;
const std::vector<int> kSizes = {250, 500, 1000, 2000};

/// A chain in all the forms that the work begins with.
struct Chain {
  explicit Chain(int layers)
      : size(layers), plain(chain_of_layers(layers)), spelled_out(chain_of_spelled_out_layers(layers)) {
    training = plain.clone();
    quantize::create_training_graph(training);
    evaluation = plain.clone();
    quantize::create_eval_graph(evaluation);
    text = graph_to_json(training);
    session = std::make_unique<Session>(evaluation);
    checkpoint = session->checkpoint();
    model = quantize::convert(evaluation, session->variables(), {.ranges_to_come = true});
  }

  int size;
  Graph plain, spelled_out, training, evaluation;
  std::string text;
  std::unique_ptr<Session> session;
  Safetensors checkpoint;
  integer::Model model;
};

const Chain& chain_of(int size) {
  static std::map<int, std::unique_ptr<Chain>> chains;
  std::unique_ptr<Chain>& chain = chains[size];
  if (!chain) chain = std::make_unique<Chain>(size);
  return *chain;
}

/// What is wrong with the chains, or "".
std::string fault_of(const Chain& chain) {
  const int quantizers = quantize::quantization_of(chain.evaluation).quantizers;
  if (quantizers != 2 * chain.size) return concat(chain.size, " layers have ", quantizers, " quantizers");
  const auto operations = static_cast<int>(chain.model.operations.size());
  if (operations != chain.size) return concat(chain.size, " layers became ", operations, " operations");
  return "";
}

/// Something to do to a chain; returns the seconds that it took.
struct Work {
  std::string name;
  std::function<double(const Chain&)> seconds;
};

/// The file that the checkpoints go to, gone at the end.
struct ScratchFile {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / concat("miniqat-bench-growth-", ::getpid(), ".safetensors");
  ~ScratchFile() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
};

double rewrite_seconds(const Graph& before, bool training, quantize::BnFold fold) {
  Graph graph = before.clone();
  const auto rewrite = training ? quantize::create_training_graph : quantize::create_eval_graph;
  return seconds_of([&] { benchmark::DoNotOptimize(rewrite(graph, {.bn_fold = fold}).text()); });
}

double first_run_seconds(const Chain& chain) {
  Graph graph = chain.training.clone();
  Session session(graph);
  const Output images = graph.output_at("images");
  const Tensor zeros(images.shape());
  return seconds_of([&] { session.run({.fetches = graph.outputs()}, {{images, zeros}}); });
}

double restore_seconds(const Chain& chain, const std::filesystem::path& file) {
  write_safetensors(file, chain.checkpoint);
  Graph graph = chain.evaluation.clone();
  Session session(graph);
  return seconds_of([&] { session.restore(read_safetensors(file), Session::Restore::kVariables, file.string()); });
}

const std::vector<Work>& graph_work() {
  using quantize::BnFold;
  static const ScratchFile scratch;
  static const std::vector<Work> all = {
      {"rewrite_training_tf", [](const Chain& c) { return rewrite_seconds(c.plain, true, BnFold::kTf); }},
      {"rewrite_training_single", [](const Chain& c) { return rewrite_seconds(c.plain, true, BnFold::kSingle); }},
      {"rewrite_spelled_out", [](const Chain& c) { return rewrite_seconds(c.spelled_out, true, BnFold::kTf); }},
      {"rewrite_evaluation", [](const Chain& c) { return rewrite_seconds(c.plain, false, BnFold::kTf); }},
      {"rewrite_again", [](const Chain& c) { return rewrite_seconds(c.training, true, BnFold::kTf); }},
      {"training_to_evaluation", [](const Chain& c) { return rewrite_seconds(c.training, false, BnFold::kTf); }},
      {"clone", [](const Chain& c) { return seconds_of([&] { benchmark::DoNotOptimize(c.training.clone()); }); }},
      {"write_json",
       [](const Chain& c) { return seconds_of([&] { benchmark::DoNotOptimize(graph_to_json(c.training)); }); }},
      {"read_json",
       [](const Chain& c) { return seconds_of([&] { benchmark::DoNotOptimize(graph_from_json(c.text, "chain")); }); }},
      {"inspect",
       [](const Chain& c) {
         return seconds_of([&] {
           benchmark::DoNotOptimize(quantize::quantization_of(c.training).label());
           benchmark::DoNotOptimize(c.training.topological_order());
         });
       }},
      {"session_start",
       [](const Chain& c) {
         Graph graph = c.training.clone();
         return seconds_of([&] { benchmark::DoNotOptimize(std::make_unique<Session>(graph)); });
       }},
      {"plan_and_first_run", first_run_seconds},
      {"checkpoint", [](const Chain& c) { return seconds_of([&] { write_safetensors(scratch.path, c.checkpoint); }); }},
      {"restore", [](const Chain& c) { return restore_seconds(c, scratch.path); }},
      {"convert",
       [](const Chain& c) {
         return seconds_of([&] {
           benchmark::DoNotOptimize(quantize::convert(c.evaluation, c.checkpoint.tensors, {.ranges_to_come = true}));
         });
       }},
      {"export_miniqat",
       [](const Chain& c) { return seconds_of([&] { benchmark::DoNotOptimize(integer::to_bytes(c.model)); }); }},
      {"export_tflite",
       [](const Chain& c) { return seconds_of([&] { benchmark::DoNotOptimize(exporters::tflite(c.model)); }); }},
      {"export_onnx",
       [](const Chain& c) { return seconds_of([&] { benchmark::DoNotOptimize(exporters::onnx(c.model)); }); }},
      {"export_json",
       [](const Chain& c) {
         const integer::Grid bytes = c.model.tensor(c.model.input).grid;
         return seconds_of([&] { benchmark::DoNotOptimize(exporters::json(c.model, bytes)); });
       }},
      {"export_c",
       [](const Chain& c) {
         const integer::TensorInfo& input = c.model.tensor(c.model.input);
         const Tensor images(integer::batch_shape(1, input.shape), DType::kUInt8);
         return seconds_of(
             [&] { benchmark::DoNotOptimize(exporters::c_source(c.model, "net", "net.h", images, input.grid)); });
       }},
  };
  return all;
}

/// From the bits JSON to a rewrite of a layer for each ten patterns, some of which rule it. The patterns are the words
/// of `kinds` in turn, with a number in place of '#'.
double bits_seconds(int patterns, const std::vector<std::string>& kinds) {
  std::string text = "{";
  for (int i = 0; i < patterns; ++i) {
    const std::string& kind = kinds[i % kinds.size()];
    const std::size_t place = kind.find('#');
    text += concat(i == 0 ? "" : ", ", "\"", kind.substr(0, place), i, kind.substr(place + 1), "\": 4");
  }
  text += "}";
  Graph graph = chain_of_layers(patterns / 10);
  return seconds_of([&] {
    quantize::create_training_graph(graph, {.layer_bits = quantize::layer_bits_from_json(text, "bits.json")});
  });
}

/// The places of wildcards in bits files.
const std::map<std::string, std::vector<std::string>>& bits_work() {
  static const std::map<std::string, std::vector<std::string>> all = {
      {"bits_file", {"block#"}},
      {"bits_file_wildcards", {"block#/*"}},
      {"bits_file_wildcards_around", {"*block#/*"}},
      {"bits_file_wildcards_before", {"*#/Conv2D"}},
      {"bits_file_wildcards_behind", {"*/Conv2D#*"}},
      {"bits_file_wildcards_within", {"block*#/Conv2D"}},
      {"bits_file_wildcards_mixed", {"*/expand#/*", "block[0-9]#*", "?lock#/*2D", "*#*"}},
  };
  return all;
}

/// The median of some runs, and for an item.
double seconds_of_item(const std::function<double()>& work, int size) {
  std::vector<double> times;
  for (int i = 0; i < kRuns; ++i) times.push_back(work());
  return median(times) / size;
}

void run(benchmark::State& state, const std::string& name, const std::function<double()>& work, int size,
         const std::string& fault) {
  if (!fault.empty()) return give_up(state, fault);
  static std::map<std::string, double> smallest;
  for (auto _ : state) {
    const double item = seconds_of_item(work, size);
    state.SetIterationTime(item * size);
    const double first = smallest.try_emplace(name, item).first->second;
    state.counters["us/item"] = item * 1e6;
    state.counters["x_smallest"] = item / first;
    if (item > kMostGrowth * first && item * size > 0.01)
      return give_up(state, concat(name, " costs ", item / first, " times as much an item as at the smallest size"));
  }
}

void register_one(const std::string& name, int size, const std::function<double()>& work, bool is_chain) {
  benchmark::RegisterBenchmark(
      concat(name, "/", size).c_str(),
      [=](benchmark::State& state) { run(state, name, work, size, is_chain ? fault_of(chain_of(size)) : ""); })
      ->Iterations(1)
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

void register_all() {
  layers::register_ops();
  quantize::register_ops();
  for (const Work& work : graph_work())
    for (const int size : kSizes)
      register_one(
          work.name, size, [&work, size] { return work.seconds(chain_of(size)); }, true);
  for (const auto& [name, kinds] : bits_work())
    for (const int patterns : {1000, 2000, 4000, 8000})
      register_one(
          name, patterns, [&kinds = kinds, patterns] { return bits_seconds(patterns, kinds); }, false);
}

}  // namespace
}  // namespace miniqat::benchmarks

int main(int argc, char** argv) {
  return miniqat::benchmarks::run_benchmarks(argc, argv, miniqat::benchmarks::register_all);
}
