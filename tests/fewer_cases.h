#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "core/tensors/random.h"

namespace miniqat::testing {

/// Whether MINIQAT_ALL_CASES is set, as in scripts/nightly: lists that take too long for every run are then gone
/// through from end to end.
inline bool tries_all_cases() { return std::getenv("MINIQAT_ALL_CASES") != nullptr; }

inline int divisor_in(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr || tries_all_cases() ? 1 : std::max(1, std::atoi(text));
}

/// By how much the number of cases is divided when a test runs a second time, on a weaker instruction set say, or under
/// sanitizers, which make everything ten times slower: $MINIQAT_FEWER_CASES, or 1.
inline int fewer_cases() { return divisor_in("MINIQAT_FEWER_CASES"); }

/// Of how many tests one is run: $MINIQAT_FEWER_TESTS, or 1 (tests/main.cpp).
inline int fewer_tests() { return divisor_in("MINIQAT_FEWER_TESTS"); }

/// So many of `count` random cases: one of n, or all.
inline std::uint64_t fewer(std::uint64_t count, int n = 1) {
  const auto each = static_cast<std::uint64_t>(tries_all_cases() ? 1 : n * fewer_cases());
  return (count + each - 1) / each;
}

/// Chooses cases out of a long list: one of n, or all. Which ones looks random, so that loops within loops don't give
/// it the same inner case every time, and is the same in every run.
class OneIn {
 public:
  explicit OneIn(int n) : n_(tries_all_cases() ? 1 : static_cast<std::uint64_t>(n * fewer_cases())) {}
  /// Whether the next case is one of the chosen.
  bool operator()() { return mix(next_++, 0) % n_ == 0; }

 private:
  std::uint64_t n_;
  std::uint64_t next_ = 0;
};

/// One of n of a list of parameters, or all of them in nightly runs. (MINIQAT_FEWER_CASES thins the tests that are made
/// of them once more, in main.cpp.)
template <class Case>
std::vector<Case> one_in(std::uint64_t n, const std::vector<Case>& all) {
  std::vector<Case> some;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (tries_all_cases() || mix(i, n) % n == 0) some.push_back(all[i]);
  return some;
}

}  // namespace miniqat::testing
