#pragma once

namespace miniqat::cli {

/// While one lives, the first SIGINT or SIGTERM only raises a flag, so that a run can end between two steps; the
/// second acts as usual.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;

  static bool requested();
};

}  // namespace miniqat::cli
