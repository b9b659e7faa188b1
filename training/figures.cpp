#include "training/figures.h"

#include <sys/resource.h>

#include <cmath>
#include <cstddef>
#include <fstream>
#include <locale>

#include "core/text/error.h"

namespace miniqat::training {
namespace {

double megabytes(std::size_t bytes) { return static_cast<double>(bytes) / 1e6; }

}  // namespace

double peak_megabytes() {
  // Not getrusage's figure if it can be helped: that one never falls below what the process that started this one held.
  std::ifstream status("/proc/self/status");
  status.imbue(std::locale::classic());
  for (std::string word; status >> word;)
    if (std::size_t kibibytes; word == "VmHWM:" && status >> kibibytes) return megabytes(kibibytes * 1024);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return megabytes(static_cast<std::size_t>(usage.ru_maxrss) * 1024);
}

std::string memory_text(const PlanMemory& plan) {
  return formatted("%s (%d dropped) in %s, arena %.1f MB for %.1f MB of tensors; process peak so far %.0f MB",
                   counted(plan.nodes, "node").c_str(), plan.dropped_nodes, counted(plan.steps, "step").c_str(),
                   megabytes(plan.arena), megabytes(plan.unshared), peak_megabytes());
}

std::optional<double> signal_to_noise(std::span<const float> reference, std::span<const float> logits) {
  double signal = 0, noise = 0;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    const double value = reference[i], error = logits[i] - value;
    signal += value * value;
    noise += error * error;
  }
  const double decibels = 10 * std::log10(signal / noise);
  return std::isfinite(decibels) ? std::optional(decibels) : std::nullopt;
}

}  // namespace miniqat::training
