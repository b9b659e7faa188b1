#pragma once

#include <exception>
#include <mutex>
#include <optional>
#include <string>

#include "core/threads/parallel.h"
#include "python/bindings/handles.h"
#include "training/run_observer.h"

namespace miniqat::python {

/// Puts the number of threads back at the end: a command sets its own for the whole process, and Python goes on. Of
/// commands side by side the last one does it, so that none changes the number of another amid its steps. One that
/// Python's functions call inside another puts back the other's.
class KeptThreadCount {
 public:
  KeptThreadCount() {
    const std::scoped_lock lock(mutex_);
    if (open_++ == 0) before_ = thread_count();
    if (of_this_thread_++ > 0) outer_ = thread_count();
  }
  ~KeptThreadCount() {
    const std::scoped_lock lock(mutex_);
    --of_this_thread_;
    if (--open_ == 0) set_thread_count(before_);
    if (outer_) set_thread_count(*outer_);
  }
  KeptThreadCount(const KeptThreadCount&) = delete;
  KeptThreadCount& operator=(const KeptThreadCount&) = delete;

 private:
  static inline std::mutex mutex_;
  static inline int open_ = 0, before_ = 0;
  static inline thread_local int of_this_thread_ = 0;
  /// None where the command lies in no other.
  std::optional<int> outer_;
};

/// Gives Python's functions the news of a run: report(text), and on_step(step, steps, loss); None hears nothing. What
/// they raise, a KeyboardInterrupt too, ends the run as a wish to stop would, and comes out of finish().
class Observer final : public training::RunObserver {
 public:
  /// Throws TypeError for what cannot be called.
  Observer(py::object report, py::object on_step);

  void say(const std::string& text) override { tell(text); }
  void warn(const std::string& text) override { tell(text); }
  void on_step(const training::StepReport& step) override;
  bool wants_to_stop() override;

  /// Calls `run` without the interpreter's lock, then throws what Python's functions have raised. The number of threads
  /// is that of before in the end.
  template <class Run>
  void follow(const Run& run) {
    const KeptThreadCount kept;
    try {
      const Unlocked open;
      run();
    } catch (const training::Stopped&) {
      // finish() says by whom.
    }
    finish();
  }

 private:
  void finish() const {
    if (raised_ != nullptr) std::rethrow_exception(raised_);
  }
  void tell(const std::string& text);
  template <class Body>
  void call(const Body& body);

  py::object report_;
  py::object on_step_;
  std::exception_ptr raised_;
};

}  // namespace miniqat::python
