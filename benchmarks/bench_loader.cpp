// The loader on pictures of CIFAR-10's size, as they are and with crop and flip: how fast a training step can get
// batches when it does nothing else.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "core/error.h"
#include "core/random.h"
#include "datasets/loader.h"

namespace miniqat {
namespace {

constexpr std::int64_t kBatch = 128;

datasets::Dataset noise(std::int64_t pictures) {
  datasets::Dataset dataset{.name = "noise",
                            .images = Tensor(Shape{pictures, 32, 32, 3}, DType::kUInt8),
                            .labels = Tensor(Shape{pictures}, DType::kInt32),
                            .scale = 1.0f / 64,
                            .zero_point = 128};
  Random random(1);
  for (std::uint8_t& byte : dataset.images.values<std::uint8_t>()) byte = static_cast<std::uint8_t>(random.bits());
  return dataset;
}

/// What is wrong with a batch, or "": pixels must be bytes as the data set means them, and not all the same.
std::string fault_of(const datasets::Batch& batch) {
  const auto pixels = batch.images.values<float>();
  for (const float pixel : pixels)
    if (const float byte = pixel * 64 + 128; byte != std::floor(byte) || byte < 0 || byte > 255)
      return concat("a pixel is ", pixel);
  return std::ranges::minmax(pixels).min < std::ranges::minmax(pixels).max ? "" : "all pixels are the same";
}

void load(benchmark::State& state, const datasets::AugmentOptions& augment) {
  const datasets::Dataset dataset = noise(10000);
  datasets::Loader loader(dataset, {.batch_size = kBatch, .augment = augment});
  if (const std::string fault = fault_of(loader.next()); !fault.empty()) return state.SkipWithError(fault.c_str());
  for (auto _ : state) benchmark::DoNotOptimize(loader.next().images.raw());
  state.counters["images/s"] =
      benchmark::Counter(static_cast<double>(state.iterations() * kBatch), benchmark::Counter::kIsRate);
}

BENCHMARK_CAPTURE(load, plain, datasets::AugmentOptions{})->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(load, crop_flip, datasets::crop_and_flip())->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace miniqat

BENCHMARK_MAIN();
