#pragma once

#include <cstdlib>

namespace miniqat::testing {

/// Whether MINIQAT_ALL_CASES is set, as in scripts/nightly: lists that take too long for every run are then gone
/// through from end to end.
inline bool tries_all_cases() { return std::getenv("MINIQAT_ALL_CASES") != nullptr; }

/// Chooses cases out of such a list: each n-th, or all.
class EveryNth {
 public:
  explicit EveryNth(int n) : n_(tries_all_cases() ? 1 : n) {}
  /// Whether the next case is one of them.
  bool operator()() { return next_++ % n_ == 0; }

 private:
  int n_;
  int next_ = 0;
};

}  // namespace miniqat::testing
