// The training step of the LeNets: forward, backward and SGD with momentum on a batch held in memory, in float and with
// quantization-aware training.
//
// `images/s` comes from the median step. `x_float` is the time of a step as a multiple of the float step's, the two
// taken in turns because machines drift.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "core/parallel.h"
#include "core/random.h"
#include "core/session.h"
#include "layers/layers.h"
#include "models/models.h"
#include "optim/sgd.h"
#include "quantize/rewrite.h"

namespace miniqat {
namespace {

constexpr std::int64_t kBatch = 128;

struct TimedModel {
  const char* name;
  /// Fixed, so that a benchmark is set up and verified only once.
  int steps;
};
constexpr TimedModel kModels[] = {{"lenet", 40}, {"lenet5", 400}};

struct Arithmetic {
  const char* name;
  /// Of weights and activations; 0 is float.
  int bits;
};
constexpr Arithmetic kFloat = {"float", 0};
constexpr Arithmetic kArithmetics[] = {kFloat, {"W8A8", 8}, {"W4A4", 4}};

/// A model with its loss, its optimizer and one batch to learn by heart.
class Training {
 public:
  Training(const std::string& model_name, int bits, std::int64_t batch, Backend backend = Backend::kFast) {
    const models::Model& model = models::find_model(model_name);
    const Output images =
        layers::placeholder(graph_, "images", {batch, model.image[0], model.image[1], model.image[2]});
    const Output labels = layers::placeholder(graph_, "labels", {batch}, DType::kInt32);
    loss_ = layers::softmax_cross_entropy(graph_, model.build(graph_, images, {}), labels);
    if (bits != 0) {
      quantize::RewriteOptions options;
      options.weight_bits = options.activation_bits = bits;
      quantize::create_training_graph(graph_, options);
    }
    session_.emplace(graph_, SessionOptions{.backend = backend});

    Random random(1);
    const Tensor pixels(images.shape());
    for (float& value : pixels.values<float>()) value = random.uniform(0, 1);
    const Tensor classes(labels.shape(), DType::kInt32);
    for (std::int64_t i = 0; i < batch; ++i) classes.data<std::int32_t>()[i] = static_cast<std::int32_t>(i % 10);
    feeds_ = {{images, pixels}, {labels, classes}};
  }

  /// Returns the loss.
  float step() { return session_->train_step(loss_, optimizer_, feeds_); }

  double timed_step() {
    const auto start = std::chrono::steady_clock::now();
    step();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  Graph graph_;
  Output loss_;
  optim::Sgd optimizer_{{.learning_rate = 0.005, .momentum = 0.9, .weight_decay = 5e-4}};
  std::optional<Session> session_;
  Feeds feeds_;
};

/// What is wrong, or "". Trains, which also warms up.
std::string fault_of(Training& training) {
  const float first = training.step();
  float last = first;
  for (int i = 0; i < 20; ++i) last = training.step();
  // Dropout makes single losses noisy; without learning they stay at ln 10 or rise.
  return last < 0.9f * first ? "" : concat("the loss does not fall: ", first, " to ", last);
}

/// The fast backend in float against the reference loops, in the loss before and after an update.
std::string difference_from_reference(const std::string& model) {
  constexpr std::int64_t kSmallBatch = 4;
  Training fast(model, 0, kSmallBatch), reference(model, 0, kSmallBatch, Backend::kReference);
  for (int step = 1; step <= 2; ++step) {
    const float actual = fast.step(), expected = reference.step();
    if (!(std::abs(actual - expected) <= 1e-4f * std::abs(expected)))
      return concat("the loss of step ", step, " is ", actual, ", with the reference loops ", expected);
  }
  return "";
}

double median(std::vector<double>& values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

void run(benchmark::State& state, const std::string& model, const Arithmetic& arithmetic, int threads) {
  set_thread_count(threads);
  Training baseline(model, kFloat.bits, kBatch), training(model, arithmetic.bits, kBatch);
  for (const std::string& fault : {difference_from_reference(model), fault_of(baseline), fault_of(training)})
    if (!fault.empty()) return state.SkipWithError(fault.c_str());
  std::vector<double> times, float_times;
  for (auto _ : state) {
    float_times.push_back(baseline.timed_step());
    times.push_back(training.timed_step());
    state.SetIterationTime(times.back());
  }
  const double time = median(times);
  state.counters["images/s"] = kBatch / time;
  state.counters["x_float"] = time / median(float_times);
}

void register_all() {
  for (const TimedModel& model : kModels)
    for (const Arithmetic& arithmetic : kArithmetics)
      for (int threads : {1, 2}) {
        const std::string name = concat(model.name, "/", arithmetic.name, "/batch:", kBatch, "/threads:", threads);
        benchmark::RegisterBenchmark(name.c_str(),
                                     [=](benchmark::State& state) { run(state, model.name, arithmetic, threads); })
            ->Iterations(model.steps)
            ->UseManualTime()
            ->Unit(benchmark::kMillisecond);
      }
}

/// As /proc/cpuinfo has it.
std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

}  // namespace
}  // namespace miniqat

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::AddCustomContext("CPU", miniqat::cpu_name());
  benchmark::AddCustomContext("cores available", std::to_string(miniqat::available_cores()));
  double load = 0;
  if (getloadavg(&load, 1) == 1 && load > 0.5)
    std::fprintf(stderr, "This machine is not quiet (load %.1f): trust the x_float ratios only.\n", load);
  miniqat::register_all();
  benchmark::RunSpecifiedBenchmarks();
}
