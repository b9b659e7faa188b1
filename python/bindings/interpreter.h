#pragma once

#include <cxxabi.h>
#include <pybind11/pybind11.h>

#include <atomic>
#include <mutex>
#include <thread>

// The interpreter's lock, its end, and threads. At its end Python ends threads that are daemons wherever they ask for
// the lock, by unwinding their stacks, which no frame of C++ between them survives: it aborts. So such a thread sleeps
// here until the process is gone.
namespace miniqat::python {

namespace py = pybind11;

/// Registers, with Python's atexit, the wait for threads that are computing.
void watch_the_end();

/// Never returns. Without the interpreter's lock.
[[noreturn]] void sleep_until_the_end();

/// Opens the interpreter's lock for long work, as py::gil_scoped_release does.
class Unlocked {
 public:
  Unlocked();
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

/// The result of long work, done without the interpreter's lock.
template <class Work>
auto unlocked(const Work& work) {
  const Unlocked open;
  return work();
}

/// Takes the interpreter's lock within Unlocked, as py::gil_scoped_acquire does. Code in Python belongs into
/// call_python().
class Locked {
 public:
  Locked();
  ~Locked();
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  PyGILState_STATE state_;
};

/// Calls `body`, which runs code in Python by one function of its C interface: no object of Python's may be in the
/// frames between.
template <class Body>
decltype(auto) in_python(const Body& body) {
  try {
    return body();
  } catch (abi::__forced_unwind&) {
    sleep_until_the_end();
  }
}

/// Calls something of Python's. Throws what it raises.
py::object call_python(py::handle function, const py::tuple& arguments, const py::dict& keywords = py::dict());
py::object call_method(py::handle owner, const char* name, const py::tuple& arguments = py::tuple());

/// Lets one thread at a time in; to be asked within Unlocked.
class OneAtATime {
 public:
  class Turn {
   public:
    explicit Turn(OneAtATime& of);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    OneAtATime& of_;
  };

 private:
  std::timed_mutex mutex_;
  /// Whose turn it is.
  std::atomic<std::thread::id> owner_ = {};
};

}  // namespace miniqat::python
