#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

namespace miniqat {

/// Threads that compute side by side, each with a ComputeScope of `threads` threads: its kernels and its working memory
/// stay with it from call to call. Worker 0 is the calling thread. For one caller at a time.
class WorkerThreads {
 public:
  /// Throws Error if no thread can be started.
  WorkerThreads(int count, int threads);
  ~WorkerThreads();
  WorkerThreads(const WorkerThreads&) = delete;
  WorkerThreads& operator=(const WorkerThreads&) = delete;

  int count() const { return static_cast<int>(failures_.size()); }
  /// Calls body(worker) once in each worker and returns when all have ended. Throws what the lowest of them has thrown.
  void run(const std::function<void(int)>& body);

 private:
  void work(int worker);
  void run_worker(int worker);
  void end();

  const int threads_;
  const std::function<void(int)>* body_ = nullptr;
  /// Numbers the calls of run(); kEnd ends the threads.
  static constexpr std::uint32_t kEnd = ~std::uint32_t{0};
  std::atomic<std::uint32_t> call_ = 0;
  std::atomic<int> running_ = 0;
  std::vector<std::exception_ptr> failures_;
  std::vector<std::thread> others_;
};

}  // namespace miniqat
