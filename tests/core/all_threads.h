#pragma once

#include "core/team/team.h"

namespace miniqat::testing {

/// Calls body(part) in `parts` threads: none takes over another's part, since all wait for one another.
template <class Body>
void with_all_threads(int parts, const Body& body) {
  const auto wait_and_run = [&](int part) {
    team_barrier();
    body(part);
    team_barrier();
  };
  run_in_team(
      parts, [](void* erased, int part) { (*static_cast<decltype(wait_and_run)*>(erased))(part); },
      const_cast<void*>(static_cast<const void*>(&wait_and_run)));
}

}  // namespace miniqat::testing
