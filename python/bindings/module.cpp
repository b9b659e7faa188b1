// The module miniqat._core: what each file binds, errors, threads.

#include "core/text/error.h"
#include "core/threads/parallel.h"
#include "layers/layers.h"
#include "python/bindings/handles.h"
#include "python/bindings/keywords.h"
#include "quantize/convert/convert.h"
#include "quantize/quantize.h"
#include "training/settings/usage_error.h"

namespace miniqat::python {
namespace {

/// The classes of exceptions, which live as long as the interpreter.
struct Exceptions {
  py::handle error, loss, update, unquantized, usage;
};
Exceptions& exceptions() {
  static Exceptions all;
  return all;
}

/// An exception of the libraries in the words of a Python user.
void raise(py::handle of, const std::exception& thrown) {
  PyErr_SetString(of.ptr(), with_keywords(thrown.what()).c_str());
}

/// Derived classes come before their bases.
void translate(std::exception_ptr thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const NonFiniteUpdate& error) {
    raise(exceptions().update, error);
  } catch (const NonFiniteLoss& error) {
    raise(exceptions().loss, error);
  } catch (const quantize::NotQuantized& error) {
    raise(exceptions().unquantized, error);
  } catch (const training::UsageError& error) {
    raise(exceptions().usage, error);
  } catch (const Error& error) {
    raise(exceptions().error, error);
  } catch (const std::filesystem::filesystem_error& error) {
    raise(exceptions().error, error);
  } catch (const py::cast_error& error) {
    raise(PyExc_TypeError, error);
  }
}

py::handle new_exception(py::module_& module, const char* name, py::handle base, const char* about) {
  py::object made = py::reinterpret_steal<py::object>(
      PyErr_NewExceptionWithDoc(concat("miniqat.", name).c_str(), about, base.ptr(), nullptr));
  module.attr(name) = made;
  return made.release();
}

void bind_errors(py::module_& module) {
  Exceptions& all = exceptions();
  all.error = new_exception(module, "Error", PyExc_RuntimeError, "A failure, in the words of the program.");
  all.loss = new_exception(module, "NonFiniteLoss", all.error,
                           "The loss of a step was NaN or infinite. Nothing of the step was kept.");
  all.update = new_exception(module, "NonFiniteUpdate", all.loss,
                             "A gradient or an updated variable was NaN or infinite. Nothing of the step was kept.");
  all.unquantized =
      new_exception(module, "NotQuantized", all.error, "A tensor lacks the range that conversion to integers needs.");
  all.usage = new_exception(module, "UsageError", all.error, "Settings that cannot be.");
  py::register_exception_translator(&translate);
}

}  // namespace
}  // namespace miniqat::python

PYBIND11_MODULE(_core, module) {
  using namespace miniqat;
  module.doc() = "The libraries of miniqat for Python.";
  // Classes, functions and exceptions say that they are of miniqat, where users find them.
  const pybind11::object own_name = module.attr("__name__");
  module.attr("__name__") = "miniqat";
  python::watch_the_end();
  layers::register_ops();
  quantize::register_ops();
  python::bind_errors(module);
  // Signatures in docstrings name the classes that exist by then.
  python::bind_graph(module);
  python::bind_optimizers(module);
  python::bind_session(module);
  python::bind_fake_quant(module);
  python::bind_data(module);
  python::bind_integers(module);
  python::bind_quantize(module);
  python::bind_training(module);
  python::bind_train(module);
  python::bind_quantize_run(module);
  python::bind_runs(module);
  module.def("set_thread_count", &set_thread_count, pybind11::arg("count"), "For all that computes, from now on.");
  module.def("thread_count", &thread_count, "The number of threads that compute.");
  module.attr("__version__") = MINIQAT_VERSION;
  module.attr("__name__") = own_name;
}
