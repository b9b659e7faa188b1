#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "training/task/task.h"

namespace miniqat::testing {

/// Logits of one example, and its label.
using Answered = std::pair<std::vector<float>, std::int32_t>;

/// What comes of these answers of a network that tells classes apart.
inline training::Evaluation evaluated(const std::vector<Answered>& answers) {
  const auto classes = static_cast<std::int64_t>(answers.front().first.size());
  training::Tally tally(training::classification(), classes);
  for (const auto& [logits, label] : answers)
    tally.add(logits, {.labels = Tensor::from<std::int32_t>({1}, std::vector{label})}, 1);
  return tally.conclude({.name = "answers", .classes = static_cast<int>(classes)});
}

}  // namespace miniqat::testing
