#pragma once

#include "core/threads/parallel.h"

namespace miniqat::testing {

/// Calls body() with 1, 2 and 3 threads.
template <class Body>
void with_thread_counts(const Body& body) {
  const int before = thread_count();
  for (const int threads : {1, 2, 3}) {
    set_thread_count(threads);
    body();
  }
  set_thread_count(before);
}

}  // namespace miniqat::testing
