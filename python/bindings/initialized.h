#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>

// Python makes an object by __new__ and fills it by __init__. One without the second (X.__new__(X), or a class of the
// user's that derives from X and forgets it) holds no object of C++; pybind11 would hand out memory that nobody has
// set.
namespace miniqat::python {

namespace py = pybind11;

/// Throws TypeError for an object of one of our classes that __init__ has not filled.
inline void require_initialized(py::handle object) {
  const auto* base = reinterpret_cast<PyTypeObject*>(py::detail::get_internals().instance_base);
  if (!object || PyType_IsSubtype(Py_TYPE(object.ptr()), const_cast<PyTypeObject*>(base)) == 0) return;
  for (const py::detail::value_and_holder& held :
       py::detail::values_and_holders(reinterpret_cast<py::detail::instance*>(object.ptr())))
    if (held.value_ptr() == nullptr)
      throw py::type_error(std::string(py::str(py::type::of(object).attr("__name__"))) + ".__init__() was not called");
}

/// True of the types that are classes in Python (handles.h, values.h).
template <class T>
inline constexpr bool kIsBound = false;

}  // namespace miniqat::python

namespace pybind11::detail {

template <class T>
requires miniqat::python::kIsBound<T>
struct type_caster<T> : type_caster_base<T> {
  bool load(handle source, bool convert) {
    miniqat::python::require_initialized(source);
    return type_caster_base<T>::load(source, convert);
  }
};

template <class T>
requires miniqat::python::kIsBound<T>
struct type_caster<std::shared_ptr<T>> : copyable_holder_caster<T, std::shared_ptr<T>> {
  bool load(handle source, bool convert) {
    miniqat::python::require_initialized(source);
    // Else None would be a null pointer.
    if (source.is_none()) return false;
    return copyable_holder_caster<T, std::shared_ptr<T>>::load(source, convert);
  }
};

}  // namespace pybind11::detail
