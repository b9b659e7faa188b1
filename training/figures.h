#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/engine/plan/plan_request.h"
#include "core/text/classic.h"

namespace miniqat::training {

/// The most memory that this process has held at once (resident set), in units of 10^6 bytes.
double peak_megabytes();

/// "128 nodes (3 dropped), arena 12.3 MB for 45.6 MB of tensors; process peak so far 78 MB", on one line.
std::string memory_text(const PlanMemory& plan);

/// How often the right class was chosen.
struct Hits {
  std::int64_t correct = 0;
  std::int64_t examples = 0;

  void count(std::int64_t chosen, std::int64_t label) {
    correct += chosen == label ? 1 : 0;
    ++examples;
  }
  double accuracy() const { return examples == 0 ? 0 : static_cast<double>(correct) / static_cast<double>(examples); }
};

/// The signal-to-noise ratio of logits in decibels: 10 log10(sum reference^2 / sum (logit - reference)^2). None where
/// both are equal.
std::optional<double> signal_to_noise(std::span<const float> reference, std::span<const float> logits);

/// "98.85%".
inline std::string percent(double fraction) { return formatted("%.2f%%", 100 * fraction); }

}  // namespace miniqat::training
