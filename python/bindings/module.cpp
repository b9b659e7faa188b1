// The module miniqat._core: what each file binds, errors, threads.

#include "core/error.h"
#include "core/parallel.h"
#include "layers/layers.h"
#include "python/bindings/handles.h"
#include "quantize/convert/convert.h"
#include "quantize/quantize.h"
#include "training/settings/usage_error.h"

namespace miniqat::python {
namespace {

/// Python tries the last one first: derived classes come after their bases.
void bind_errors(py::module_& module) {
  const auto error = py::register_exception<Error>(module, "Error", PyExc_RuntimeError);
  error.attr("__doc__") = "A failure, in the words of the program.";
  const auto loss = py::register_exception<NonFiniteLoss>(module, "NonFiniteLoss", error);
  loss.attr("__doc__") = "The loss of a step was NaN or infinite. Nothing of the step was kept.";
  const auto update = py::register_exception<NonFiniteUpdate>(module, "NonFiniteUpdate", loss);
  update.attr("__doc__") = "A gradient or an updated variable was NaN or infinite. Nothing of the step was kept.";
  const auto unquantized = py::register_exception<quantize::NotQuantized>(module, "NotQuantized", error);
  unquantized.attr("__doc__") = "A tensor lacks the range that conversion to integers needs.";
  const auto usage = py::register_exception<training::UsageError>(module, "UsageError", error);
  usage.attr("__doc__") = "Settings that cannot be.";
}

}  // namespace
}  // namespace miniqat::python

PYBIND11_MODULE(_core, module) {
  using namespace miniqat;
  module.doc() = "The libraries of miniqat for Python.";
  // Classes, functions and exceptions say that they are of miniqat, where users find them.
  const pybind11::object own_name = module.attr("__name__");
  module.attr("__name__") = "miniqat";
  layers::register_ops();
  quantize::register_ops();
  python::bind_errors(module);
  // Signatures in docstrings name the classes that exist by then.
  python::bind_graph(module);
  python::bind_optimizers(module);
  python::bind_session(module);
  python::bind_fake_quant(module);
  python::bind_data(module);
  python::bind_models(module);
  python::bind_integers(module);
  python::bind_quantize(module);
  python::bind_training(module);
  module.def("set_thread_count", &set_thread_count, pybind11::arg("count"), "For all that computes, from now on.");
  module.def("thread_count", &thread_count, "The number of threads that compute.");
  module.attr("__version__") = MINIQAT_VERSION;
  module.attr("__name__") = own_name;
}
