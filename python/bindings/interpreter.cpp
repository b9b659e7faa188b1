#include "python/bindings/interpreter.h"

#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>

#include "core/text/error.h"

namespace miniqat::python {
namespace {

/// Threads in Unlocked, and whether the interpreter is about to end.
struct Threads {
  std::mutex mutex;
  std::condition_variable changed;
  int working = 0;
  bool is_end = false;
  /// The thread that ends the interpreter: the only one that goes on then.
  std::thread::id ending;
};

/// Never destroyed: threads may sleep in it when the process ends.
Threads& threads() {
  static Threads& all = *new Threads;
  return all;
}

/// With the mutex.
bool is_over_for_this_thread() { return threads().is_end && threads().ending != std::this_thread::get_id(); }

/// From now on the thread computes without the interpreter's lock.
void enter() {
  {
    const std::lock_guard one(threads().mutex);
    if (!is_over_for_this_thread()) {
      ++threads().working;
      return;
    }
  }
  sleep_until_the_end();
}

/// It does so no longer. If the interpreter ends, it does nothing any more.
void leave() {
  {
    const std::lock_guard one(threads().mutex);
    --threads().working;
    threads().changed.notify_all();
    if (!is_over_for_this_thread()) return;
  }
  sleep_until_the_end();
}

/// What computes is let finish, for the process takes apart what it uses. Not for ever: someone pressed Ctrl-D.
void begin_end() {
  constexpr std::chrono::seconds kPatience(10);
  {
    const std::lock_guard one(threads().mutex);
    threads().is_end = true;
    threads().ending = std::this_thread::get_id();
  }
  const py::gil_scoped_release open;
  std::unique_lock waiting(threads().mutex);
  threads().changed.wait_for(waiting, kPatience, [] { return threads().working == 0; });
}

}  // namespace

void watch_the_end() {
  py::module_::import("atexit").attr("register")(py::cpp_function(&begin_end));
  // Other threads are not in a child process.
  pthread_atfork(nullptr, nullptr, [] { threads().working = 0; });
}

void sleep_until_the_end() {
  for (;;) pause();
}

Unlocked::Unlocked() : state_(PyEval_SaveThread()) { enter(); }

Unlocked::~Unlocked() {
  leave();
  try {
    PyEval_RestoreThread(state_);
  } catch (abi::__forced_unwind&) {
    sleep_until_the_end();
  }
}

Locked::Locked() {
  leave();
  try {
    state_ = PyGILState_Ensure();
  } catch (abi::__forced_unwind&) {
    sleep_until_the_end();
  }
}

Locked::~Locked() {
  PyGILState_Release(state_);
  enter();
}

py::object call_python(py::handle function, const py::tuple& arguments, const py::dict& keywords) {
  PyObject* const result = in_python([&] { return PyObject_Call(function.ptr(), arguments.ptr(), keywords.ptr()); });
  if (result == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(result);
}

py::object call_method(py::handle owner, const char* name, const py::tuple& arguments) {
  return call_python(py::object(owner.attr(name)), arguments);
}

OneAtATime::Turn::Turn(OneAtATime& of) : of_(of) {
  constexpr std::chrono::milliseconds kLook(50);
  if (of.owner_ == std::this_thread::get_id())
    fail("this thread is using the graph already: a signal's handler cannot use it, too");
  while (!of.mutex_.try_lock_for(kLook)) {
    leave();
    enter();
    const std::lock_guard one(threads().mutex);
    if (threads().is_end) fail("another thread was using the graph when Python ended");
  }
  of.owner_ = std::this_thread::get_id();
}

OneAtATime::Turn::~Turn() {
  of_.owner_ = std::thread::id();
  of_.mutex_.unlock();
}

}  // namespace miniqat::python
