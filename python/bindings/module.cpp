// The module miniqat._core: what each file binds, errors, threads.

#include <algorithm>

#include "core/text/error.h"
#include "core/text/suggest.h"
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

using Call = PyObject* (*)(PyObject*, PyObject*, PyObject*);
/// The one function behind all that pybind11 binds.
Call call_of_pybind = nullptr;

/// "train() needs the argument out"; "" where all names fit.
std::string what_does_not_fit(const py::detail::function_record& function, PyObject* given, PyObject* keywords) {
  const std::string name =
      function.is_constructor ? std::string(py::str(function.scope.attr("__name__"))) : std::string(function.name);
  const auto positional = static_cast<std::size_t>(PyTuple_GET_SIZE(given));
  const std::size_t own = function.is_method ? 1 : 0;
  if (positional < own) return name + "() needs the argument self";
  if (positional > function.nargs_pos && !function.has_args)
    return concat(name, "() takes ", counted(function.nargs_pos - own, "argument"), " without a name, not ",
                  positional - own);
  if (function.args.empty() && !function.has_args && positional < function.nargs)
    return concat(name, "() takes ", counted(function.nargs - own, "argument"), ", not ", positional - own);
  std::vector<std::string> names, missing;
  for (std::size_t i = 0; i < function.args.size(); ++i) {
    const py::detail::argument_record& argument = function.args[i];
    names.emplace_back(argument.name == nullptr ? "" : argument.name);
    const bool is_keyword = keywords != nullptr && PyDict_GetItemString(keywords, names.back().c_str()) != nullptr;
    if (i >= positional && !argument.value && !is_keyword) missing.push_back(names.back());
  }
  if (!missing.empty())
    return concat(name, "() needs the ", missing.size() == 1 ? "argument " : "arguments ", joined(missing, ", "));
  if (keywords == nullptr || function.has_kwargs) return "";
  for (const auto& [key, value] : py::reinterpret_borrow<py::dict>(keywords))
    if (const std::string keyword = py::str(key); std::ranges::count(names, keyword) == 0)
      return concat(name, "() has no argument ", keyword, did_you_mean(keyword, names));
  return "";
}

/// pybind11 answers arguments that do not fit with all signatures and all values. Where one is missing or too many, its
/// name says more.
PyObject* call_in_plain_words(PyObject* self, PyObject* given, PyObject* keywords) {
  PyObject* const result = call_of_pybind(self, given, keywords);
  if (result != nullptr || PyErr_ExceptionMatches(PyExc_TypeError) == 0) return result;
  try {
    py::error_already_set thrown;
    const auto* function = static_cast<const py::detail::function_record*>(
        PyCapsule_GetPointer(self, py::detail::get_function_record_capsule_name()));
    const bool is_of_pybind = std::string_view(thrown.what()).find("(): incompatible ") != std::string_view::npos;
    const std::string text =
        is_of_pybind && function->next == nullptr ? what_does_not_fit(*function, given, keywords) : "";
    if (text.empty())
      thrown.restore();
    else
      PyErr_SetString(PyExc_TypeError, text.c_str());
  } catch (py::error_already_set& other) {
    other.restore();
  }
  return nullptr;
}

/// Sends the calls of functions, methods and constructors in a module or class through call_in_plain_words().
void speak_plainly(py::handle scope) {
  for (const auto& [name, member] : py::dict(scope.attr("__dict__"))) {
    if (PyType_Check(member.ptr()) != 0 && py::hasattr(member, "__module__") &&
        std::string(py::str(member.attr("__module__"))) == "miniqat")
      speak_plainly(member);
    py::object function = py::reinterpret_borrow<py::object>(member);
    if (PyInstanceMethod_Check(function.ptr()) != 0 || py::hasattr(function, "__func__"))
      function = function.attr("__func__");
    if (PyCFunction_Check(function.ptr()) == 0) continue;
    PyObject* const record = PyCFunction_GET_SELF(function.ptr());
    if (record == nullptr || PyCapsule_IsValid(record, py::detail::get_function_record_capsule_name()) == 0) continue;
    PyCFunction& call = reinterpret_cast<PyCFunctionObject*>(function.ptr())->m_ml->ml_meth;
    if (call_of_pybind == nullptr) call_of_pybind = reinterpret_cast<Call>(reinterpret_cast<void (*)()>(call));
    call = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_in_plain_words));
  }
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
  // With NumPy. Its import runs code in Python, which a daemon at the end could not leave in the midst of a conversion.
  pybind11::module_::import("numpy.ma");
  layers::register_ops();
  quantize::register_ops();
  python::bind_errors(module);
  // Signatures in docstrings name the classes that exist by then.
  python::bind_graph(module);
  python::bind_optimizers(module);
  python::bind_session(module);
  python::bind_fake_quant(module);
  python::bind_data(module);
  python::bind_loader(module);
  python::bind_integers(module);
  python::bind_quantize(module);
  python::bind_training(module);
  python::bind_train(module);
  python::bind_quantize_run(module);
  python::bind_runs(module);
  module.def("set_thread_count", &set_thread_count, pybind11::arg("count"), "For all that computes, from now on.");
  module.def("thread_count", &thread_count, "The number of threads that compute.");
  python::speak_plainly(module);
  module.attr("__version__") = MINIQAT_VERSION;
  module.attr("__name__") = own_name;
}
