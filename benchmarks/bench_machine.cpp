// The limits of this machine: copying, in and out of cache, and oneDNN's matrix product. docs/performance.md derives
// from these two how long a training step must take at least.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/kernels/onednn.h"
#include "core/parallel.h"
#include "core/random.h"
#include "core/tensor.h"

namespace miniqat {
namespace {

std::vector<float> noise(std::int64_t n) {
  std::vector<float> values(n);
  Random random(1);
  for (float& value : values) value = random.uniform(-1, 1);
  return values;
}

/// `bytes` from one place to another, each thread a stretch of its own; bytes read and written count.
void copy(benchmark::State& state, std::int64_t bytes, int threads) {
  set_thread_count(threads);
  const std::int64_t n = bytes / static_cast<std::int64_t>(sizeof(float));
  // In such memory as activations have.
  const Tensor from = Tensor::from<float>(Shape{n}, noise(n));
  Tensor to(Shape{n});
  const auto copy_once = [&] {
    parallel_for(n, n / threads, [&](std::int64_t begin, std::int64_t end) {
      std::copy_n(from.data<float>() + begin, end - begin, to.data<float>() + begin);
    });
    benchmark::ClobberMemory();
  };
  copy_once();
  if (!std::ranges::equal(to.values<float>(), from.values<float>())) return state.SkipWithError("the copy differs");
  for (auto _ : state) copy_once();
  state.SetBytesProcessed(state.iterations() * 2 * bytes);
}

void matrix_product(benchmark::State& state, std::int64_t size, int threads) {
  set_thread_count(threads);
  const std::vector<float> a = noise(size * size), b = noise(size * size);
  std::vector<float> product(size * size);
  const auto multiply = [&] {
    onednn::multiply(onednn::Matrix::row_major(a.data(), size, size), onednn::Matrix::row_major(b.data(), size, size),
                     product.data());
  };
  multiply();
  // One row says whether it was a product at all; the tests say the rest.
  for (std::int64_t column = 0; column < size; ++column) {
    double expected = 0;
    for (std::int64_t k = 0; k < size; ++k) expected += double{a[k]} * b[k * size + column];
    if (!(std::abs(product[column] - expected) <= 1e-3)) return state.SkipWithError("the product is wrong");
  }
  for (auto _ : state) multiply();
  state.counters["GFLOP/s"] = benchmark::Counter(2e-9 * static_cast<double>(size * size * size * state.iterations()),
                                                 benchmark::Counter::kIsRate);
}

void register_all() {
  for (int threads : {1, 2}) {
    for (const auto& [name, bytes] :
         {std::pair("64KiB", 1 << 16), std::pair("1MiB", 1 << 20), std::pair("256MiB", 1 << 28)})
      benchmark::RegisterBenchmark(concat("copy/", name, "/threads:", threads).c_str(), [bytes = bytes, threads](
                                                                                            benchmark::State& state) {
        copy(state, bytes, threads);
      })->UseRealTime();
    benchmark::RegisterBenchmark(concat("sgemm/1024/threads:", threads).c_str(), [threads](benchmark::State& state) {
      matrix_product(state, 1024, threads);
    })->UseRealTime();
  }
}

}  // namespace
}  // namespace miniqat

int main(int argc, char** argv) {
  const miniqat::ComputeScope computing;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  miniqat::register_all();
  benchmark::RunSpecifiedBenchmarks();
}
