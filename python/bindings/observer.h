#pragma once

#include <exception>
#include <string>

#include "python/bindings/handles.h"
#include "training/run_observer.h"

namespace miniqat::python {

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

  /// Calls `run` without the interpreter's lock, then throws what Python's functions have raised.
  template <class Run>
  void follow(const Run& run) {
    try {
      const Unlocked open;
      run();
    } catch (const training::Stopped&) {
      // By whom, finish() says.
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
