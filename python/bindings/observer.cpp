#include "python/bindings/observer.h"

#include "python/bindings/keywords.h"

namespace miniqat::python {

Observer::Observer(py::object report, py::object on_step) : report_(std::move(report)), on_step_(std::move(on_step)) {
  for (const auto& [name, function] : {std::pair("report", report_), std::pair("on_step", on_step_)})
    if (!function.is_none() && PyCallable_Check(function.ptr()) == 0)
      throw py::type_error(concat(name, " must be a function or None"));
}

template <class Body>
void Observer::call(const Body& body) {
  if (raised_ != nullptr) return;
  const Locked locked;
  try {
    body();
  } catch (const py::error_already_set&) {
    raised_ = std::current_exception();
  }
}

void Observer::tell(const std::string& text) {
  call([&] {
    if (!report_.is_none()) call_python(report_, py::make_tuple(with_keywords(text)));
  });
}

void Observer::on_step(const training::StepReport& step) {
  call([&] {
    if (!on_step_.is_none()) call_python(on_step_, py::make_tuple(step.step, step.total_steps, step.loss));
  });
}

bool Observer::wants_to_stop() {
  call([] {
    if (in_python(PyErr_CheckSignals) != 0) throw py::error_already_set();
  });
  return raised_ != nullptr;
}

}  // namespace miniqat::python
