#include "benchmarks/suite/measure/machine_rates.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/kernels/onednn.h"
#include "core/parallel.h"
#include "core/tensor.h"

namespace miniqat::benchmarks {
namespace {

/// The least of `rounds` times, after one that is not counted.
template <class Body>
double least_seconds(int rounds, const Body& body) {
  using Clock = std::chrono::steady_clock;
  body();
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < rounds; ++round) {
    const Clock::time_point begin = Clock::now();
    body();
    least = std::min(least, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return least;
}

double product_rate() {
  constexpr std::int64_t kSize = 1024;
  const std::vector<float> a(kSize * kSize, 0.5f), b(kSize * kSize, 0.25f);
  std::vector<float> product(kSize * kSize);
  const double seconds = least_seconds(12, [&] {
    onednn::multiply(onednn::Matrix::row_major(a.data(), kSize, kSize),
                     onednn::Matrix::row_major(b.data(), kSize, kSize), product.data());
  });
  return 2.0 * kSize * kSize * kSize / seconds;
}

double copy_rate() {
  constexpr std::int64_t kElements = std::int64_t{1} << 25;
  // In such memory as activations have.
  const Tensor from{Shape{kElements}};
  Tensor to{Shape{kElements}};
  const std::int64_t grain = kElements / thread_count();
  const double seconds = least_seconds(6, [&] {
    parallel_for(kElements, grain, [&](std::int64_t begin, std::int64_t end) {
      std::copy_n(from.data<float>() + begin, end - begin, to.data<float>() + begin);
    });
  });
  return 2.0 * sizeof(float) * kElements / seconds;
}

}  // namespace

MachineRates measure_rates() {
  return {.threads = thread_count(), .operations_per_second = product_rate(), .bytes_per_second = copy_rate()};
}

}  // namespace miniqat::benchmarks
