#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "core/threads/parallel.h"

namespace miniqat::testing {

/// Two threads a core that do nothing but use it, as long as the object lives.
class BusyThreads {
 public:
  BusyThreads() {
    for (int i = 0; i < 2 * available_cores(); ++i)
      threads_.emplace_back([this] {
        while (!stop_) {
        }
      });
  }
  ~BusyThreads() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  BusyThreads(const BusyThreads&) = delete;
  BusyThreads& operator=(const BusyThreads&) = delete;

 private:
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace miniqat::testing
