#pragma once

#include <cstdint>

namespace miniqat::training {

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

}  // namespace miniqat::training
