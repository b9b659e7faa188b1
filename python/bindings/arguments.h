#pragma once

#include <pybind11/pybind11.h>

namespace miniqat::python {

namespace py = pybind11;

inline bool takes_anything(PyObject* /*object*/) { return true; }

/// Arguments of any type, under the names that help() shows for them. borrow(), output_name() and output_names() refuse
/// what is not meant.
class ArrayLike : public py::object {
  PYBIND11_OBJECT_DEFAULT(ArrayLike, py::object, takes_anything)
};
class OutputLike : public py::object {
  PYBIND11_OBJECT_DEFAULT(OutputLike, py::object, takes_anything)
};
class OutputsLike : public py::object {
  PYBIND11_OBJECT_DEFAULT(OutputsLike, py::object, takes_anything)
};

}  // namespace miniqat::python

namespace pybind11::detail {

template <>
struct handle_type_name<miniqat::python::ArrayLike> {
  static constexpr auto name = const_name("ArrayLike");
};
template <>
struct handle_type_name<miniqat::python::OutputLike> {
  static constexpr auto name = const_name("Output | str");
};
template <>
struct handle_type_name<miniqat::python::OutputsLike> {
  static constexpr auto name = const_name("Output | str | Sequence[Output | str]");
};

}  // namespace pybind11::detail
