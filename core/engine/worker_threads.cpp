#include "core/engine/worker_threads.h"

#include <chrono>
#include <system_error>
#include <utility>

#include "core/text/error.h"
#include "core/threads/parallel.h"

namespace miniqat {
namespace {

using Clock = std::chrono::steady_clock;

/// How long a thread looks before it sleeps, as in core/team/team.cpp: sleep and wake-up take about as long.
constexpr std::chrono::microseconds kSpinTime(50);

/// Waits while `word` is `value`, first without sleep.
template <class T>
void wait_while(const std::atomic<T>& word, T value) {
  constexpr int kLooksATime = 64;
  for (const Clock::time_point end = Clock::now() + kSpinTime; Clock::now() < end;)
    for (int i = 0; i < kLooksATime; ++i)
      if (word.load(std::memory_order_relaxed) != value) return;
  word.wait(value);
}

}  // namespace

WorkerThreads::WorkerThreads(int count, int threads) : threads_(threads), failures_(static_cast<std::size_t>(count)) {
  try {
    for (int worker = 1; worker < count; ++worker) others_.emplace_back([this, worker] { work(worker); });
  } catch (const std::system_error& error) {
    end();
    fail("cannot start ", count, " threads: ", error.what());
  }
}

WorkerThreads::~WorkerThreads() { end(); }

void WorkerThreads::end() {
  call_ = kEnd;
  call_.notify_all();
  for (std::thread& other : others_) other.join();
}

void WorkerThreads::work(int worker) {
  const ComputeScope computing(threads_);
  for (std::uint32_t seen = 0;;) {
    wait_while(call_, seen);
    seen = call_;
    if (seen == kEnd) return;
    run_worker(worker);
    if (--running_ == 0) running_.notify_one();
  }
}

void WorkerThreads::run_worker(int worker) {
  try {
    (*body_)(worker);
  } catch (...) {
    failures_[static_cast<std::size_t>(worker)] = std::current_exception();
  }
}

void WorkerThreads::run(const std::function<void(int)>& body) {
  body_ = &body;
  running_ = static_cast<int>(others_.size());
  call_ = (call_ + 1) % kEnd;
  call_.notify_all();
  {
    const ComputeScope computing(threads_);
    run_worker(0);
  }
  for (int left = running_; left != 0; left = running_) wait_while(running_, left);
  std::exception_ptr first;
  for (std::exception_ptr& failure : failures_) {
    std::exception_ptr taken = std::exchange(failure, nullptr);
    if (!first) first = std::move(taken);
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace miniqat
