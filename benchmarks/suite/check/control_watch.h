#pragma once

#include <cfenv>

#include "core/floating_point_control.h"

namespace miniqat::benchmarks {

/// Code of others may change how the calling thread rounds and what it does with denormals. The reference runs in the
/// same thread, and would be wrong with it.
class ControlWatch {
 public:
  /// The fault, for errors.
  static constexpr const char* kFault = "leaves the rounding mode or another switch of floating-point numbers changed";

  ControlWatch() : switches_(switches()), rounding_(std::fegetround()) {}
  /// Puts all back as it was at the construction. Returns whether something was changed.
  bool put_back() const {
    if (switches() == switches_ && std::fegetround() == rounding_) return false;
    std::fesetround(rounding_);
    set_floating_point_control(switches_);
    return true;
  }

 private:
  static unsigned switches() { return floating_point_control() & ~kRaisedFlags; }

  unsigned switches_;
  int rounding_;
};

}  // namespace miniqat::benchmarks
