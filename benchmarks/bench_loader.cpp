// The loader, as pictures are and with crop and flip: how fast a training step can get batches when it does nothing
// else, and whether that is fast enough.
//
// `images/s` is the loader alone. For the data that a model trains on, `x_training` is the loader's speed as a multiple
// of the training step's: above 1, the step never waits. lenet5 has the fastest step there is. Loader and step take
// turns; in training they share the cores, so that a step loses at most 1 / x_training of one thread.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bench/noise_training.h"
#include "benchmarks/machine.h"
#include "core/tensors/random.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"
#include "datasets/loader.h"

namespace miniqat::benchmarks {
namespace {

constexpr std::int64_t kBatch = 128;

struct Pictures {
  const char* name;
  std::int64_t side;
  std::int64_t channels;
  /// Whose training step is the fastest on these; null when none is timed.
  const char* model;
};
constexpr Pictures kMnist = {"28x28x1", 28, 1, "lenet5"};
constexpr Pictures kCifar = {"32x32x3", 32, 3, nullptr};

datasets::Dataset noise(const Pictures& pictures) {
  constexpr std::int64_t kPictures = 10000;
  datasets::Dataset dataset{
      .name = "noise",
      .images = Tensor(Shape{kPictures, pictures.side, pictures.side, pictures.channels}, DType::kUInt8),
      .labels = Tensor(Shape{kPictures}, DType::kInt32),
      .scale = 1.0f / 64,
      .zero_point = 128};
  Random random(1);
  for (std::uint8_t& byte : dataset.images.values<std::uint8_t>()) byte = static_cast<std::uint8_t>(random.bits());
  return dataset;
}

/// What is wrong with a batch, or "": its bytes must mean what the data set's do, and not all be the same.
std::string fault_of(const datasets::Batch& batch) {
  const auto [scale, zero_point] = batch.images.grid.value_or(CodeGrid());
  if (scale != 1.0f / 64 || zero_point != 128) return concat("scale ", scale, ", zero point ", zero_point);
  const auto [least, most] = std::ranges::minmax(batch.images.values<std::uint8_t>());
  return least < most ? "" : "all pixels are the same";
}

/// Seconds of a batch when many are taken in a row: those that lie ready are not counted.
double seconds_of_batch(datasets::Loader& loader) {
  constexpr int kReady = 3;
  constexpr int kCounted = 20;
  for (int i = 0; i < kReady; ++i) loader.next();
  return seconds_of([&] {
           for (int i = 0; i < kCounted; ++i) benchmark::DoNotOptimize(loader.next().images.raw());
         }) /
         kCounted;
}

/// The loader's speed as a multiple of the training step's.
double speed_over_training(datasets::Loader& loader, const char* model) {
  constexpr int kTurns = 15;
  set_thread_count(std::min(2, available_cores()));
  bench::NoiseTraining training({.model = model, .batch = kBatch});
  training.warm_up(20);
  std::vector<double> batches, steps;
  for (int turn = 0; turn < kTurns; ++turn) {
    steps.push_back(seconds_of([&] { training.step(); }));
    batches.push_back(seconds_of_batch(loader));
  }
  return median(steps) / median(batches);
}

void load(benchmark::State& state, const Pictures& pictures, const datasets::AugmentOptions& augment) {
  const datasets::Dataset dataset = noise(pictures);
  datasets::Loader loader(dataset, {.batch_size = kBatch, .augment = augment});
  if (const std::string fault = fault_of(loader.next()); !fault.empty()) return give_up(state, fault);
  for (auto _ : state) benchmark::DoNotOptimize(loader.next().images.raw());
  state.counters["images/s"] =
      benchmark::Counter(static_cast<double>(state.iterations() * kBatch), benchmark::Counter::kIsRate);
  if (pictures.model != nullptr) state.counters["x_training"] = speed_over_training(loader, pictures.model);
}

void register_all() {
  for (const Pictures& pictures : {kMnist, kCifar})
    for (bool augmented : {false, true}) {
      const std::string name = concat("load/", pictures.name, augmented ? "/crop_flip" : "/plain");
      benchmark::RegisterBenchmark(name.c_str(),
                                   [=](benchmark::State& state) {
                                     load(state, pictures,
                                          augmented ? datasets::crop_and_flip() : datasets::AugmentOptions{});
                                   })
          ->UseRealTime()
          ->Unit(benchmark::kMillisecond);
    }
}

}  // namespace
}  // namespace miniqat::benchmarks

int main(int argc, char** argv) {
  return miniqat::benchmarks::run_benchmarks(argc, argv, miniqat::benchmarks::register_all);
}
