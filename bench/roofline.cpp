#include "bench/roofline.h"

#include <algorithm>
#include <atomic>

#include "bench/measure/rounds.h"
#include "core/kernels/instruction_set.h"
#include "core/kernels/onednn_matrix.h"
#include "core/tensors/tensor.h"
#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/threads/parallel.h"
#include "quantize/kernels/fake_quant_kernels.h"

namespace miniqat::bench {
namespace {

#define MINIQAT_LOOPS "bench/roofline_loops.h"
#include "core/kernels/per_instruction_set.h"

/// Keep results that nobody needs, so that no compiler leaves the work out.
std::atomic<float> peak_result;
std::atomic<std::uint32_t> seen_bits;

/// The least of some rounds: the roof is what the machine can do, not what it does on average.
template <class Body>
double least_of_rounds(double budget_seconds, const Body& body) {
  const auto rounds = measure_in_turns(1, {.seconds = budget_seconds, .longest_stretch = 1},
                                       [&](std::size_t) { return seconds_of(body); });
  return std::ranges::min(rounds[0]);
}

/// Results a second of a loop on each of the threads.
double rate_of(float (*loop)(std::int64_t), double results_a_step, int threads) {
  constexpr std::int64_t kSteps = 20'000;
  const double seconds = least_of_rounds(0.03, [&] {
    parallel_shares(threads, threads, [&](std::int64_t, std::int64_t, std::int64_t) { peak_result = loop(kSteps); });
  });
  return static_cast<double>(kSteps * threads) * results_a_step / seconds;
}

PeakRates peak_rates(int threads) {
  const int lanes = MINIQAT_PICK(peak_lanes)();
  return {.operations = rate_of(MINIQAT_PICK(products_and_sums), 2.0 * lanes, threads),
          .divisions = rate_of(MINIQAT_PICK(quotients), lanes, threads)};
}

/// Takes `seconds`, and at least three copies.
CopySpeed copy_speed(const std::string& place, std::int64_t bytes, double seconds) {
  const std::int64_t n = std::max<std::int64_t>(bytes / 2 / 4, 1);
  Tensor from(Shape{n}), to(Shape{n});
  std::ranges::fill(from.values<float>(), 1.0f);
  std::ranges::fill(to.values<float>(), 0.0f);
  const std::int64_t repeats = std::max<std::int64_t>(1, 400'000 / n);
  const double least = least_of_rounds(seconds, [&] {
    for (std::int64_t i = 0; i < repeats; ++i) quantize::copy_floats(from.data<float>(), to.data<float>(), n);
  });
  return {place, 8 * n, static_cast<double>(8 * n * repeats) / least};
}

/// In half of each cache, up to the one that holds `largest_bytes`; out of cache if none does.
std::vector<CopySpeed> copy_speeds(const Machine& machine, std::int64_t largest_bytes) {
  std::vector<CopySpeed> speeds;
  for (const Cache& cache : machine.caches) {
    speeds.push_back(copy_speed(concat("L", cache.level), cache.bytes / 2, 0.03));
    if (cache.bytes >= largest_bytes) return speeds;
  }
  speeds.push_back(copy_speed("memory", memory_copy_bytes(machine), 0.03));
  return speeds;
}

/// Operations a second of oneDNN's matrix product.
double product_rate() {
  constexpr std::int64_t kSize = 1024;
  const std::vector<float> a(kSize * kSize, 0.5f), b(kSize * kSize, 0.25f);
  std::vector<float> product(kSize * kSize);
  const double seconds = least_of_rounds(0.25, [&] {
    onednn::multiply(onednn::Matrix::row_major(a.data(), kSize, kSize),
                     onednn::Matrix::row_major(b.data(), kSize, kSize), product.data());
  });
  return 2.0 * kSize * kSize * kSize / seconds;
}

}  // namespace

MachineRates measure_rates() {
  return {.threads = thread_count(),
          .operations_per_second = product_rate(),
          .bytes_per_second = copy_speed("memory", 256 << 20, 0.2).bytes_per_second};
}

void read_floats(const float* x, std::int64_t n) {
  seen_bits += MINIQAT_PICK(sum_of_bits)(reinterpret_cast<const std::uint32_t*>(x), n);
}

std::int64_t memory_copy_bytes(const Machine& machine) {
  const std::int64_t wanted = std::max<std::int64_t>(256 << 20, 2 * machine.last_cache_bytes());
  return machine.memory_bytes > 0 ? std::min(wanted, machine.memory_bytes / 2) : wanted;
}

std::string cache_note(const Machine& machine, const std::string& what, std::int64_t bytes) {
  if (bytes >= 2 * machine.last_cache_bytes()) return "";
  const Cache& last = machine.caches.back();
  return concat(what, " (", bytes_text(bytes), ") are not out of cache: L", last.level, " has ", bytes_text(last.bytes),
                "\n");
}

Roof measure_roof(std::int64_t largest_bytes) {
  const Machine machine = this_machine();
  const QuietWatch watch;
  Roof roof;
  roof.threads = thread_count();
  roof.all_threads = peak_rates(roof.threads);
  roof.copies = copy_speeds(machine, largest_bytes);
  roof.one_thread = roof.threads == 1 ? roof.all_threads : peak_rates(1);
  for (const Cache& cache : machine.caches)
    if (cache.level <= 2) roof.own_cache_bytes = std::max(roof.own_cache_bytes, cache.bytes);
  roof.disturbance = watch.since();
  if (roof.copies.size() > machine.caches.size())
    roof.note = cache_note(machine, "the tensors of the copy called memory", memory_copy_bytes(machine));
  return roof;
}

PeakRates Roof::peak_of(int some) const {
  if (some >= threads) return all_threads;
  return {.operations = std::min(all_threads.operations, some * one_thread.operations),
          .divisions = std::min(all_threads.divisions, some * one_thread.divisions)};
}

std::string Roof::text() const {
  std::string text = formatted(
      "roof, %s: %.0f billion operations/s, %.1f billion divisions/s; copy, GB/s:", counted(threads, "thread").c_str(),
      all_threads.operations / 1e9, all_threads.divisions / 1e9);
  for (const CopySpeed& copy : copies) text += formatted(" %.0f (%s)", copy.bytes_per_second / 1e9, copy.place.c_str());
  return text + "\n" + note;
}

nlohmann::ordered_json Roof::json() const {
  nlohmann::ordered_json speeds = nlohmann::ordered_json::array();
  for (const CopySpeed& copy : copies)
    speeds.push_back({{"place", copy.place}, {"bytes", copy.bytes}, {"bytes_per_second", copy.bytes_per_second}});
  return {{"threads", threads},
          {"operations_per_second", all_threads.operations},
          {"divisions_per_second", all_threads.divisions},
          {"one_thread",
           {{"operations_per_second", one_thread.operations}, {"divisions_per_second", one_thread.divisions}}},
          {"copy", speeds},
          {"quiet", is_quiet()}};
}

double least_seconds(const OperationCost& cost, std::int64_t elements, int threads, const LimitTimes& limits,
                     const Roof& roof) {
  const OperationCost &copy = traits_of(Operation::kMemcpy).cost, &read = traits_of(Operation::kRead).cost;
  const bool is_in_own_caches = elements * static_cast<std::int64_t>(copy.bytes()) <= threads * roof.own_cache_bytes;
  const double speed = is_in_own_caches ? static_cast<double>(threads) / limits.threads : 1;
  const double memory = (cost.copied_bytes / copy.copied_bytes * limits.copy_seconds +
                         cost.read_bytes / read.read_bytes * limits.read_seconds) /
                        speed;
  const auto n = static_cast<double>(elements);
  const PeakRates peak = roof.peak_of(threads);
  const double arithmetic = std::max(n * cost.operations / peak.operations, n * cost.divisions / peak.divisions);
  return std::max(memory, arithmetic);
}

}  // namespace miniqat::bench
