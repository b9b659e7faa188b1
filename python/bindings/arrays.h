#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <string>
#include <utility>
#include <vector>

#include "core/files/safetensors.h"
#include "core/tensors/shape.h"
#include "core/tensors/tensor.h"

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

/// A tensor that looks at the memory of a NumPy array, and what keeps that memory.
struct Borrowed {
  Tensor tensor;
  py::object keeper;
};

/// The numbers of anything that NumPy makes an array of. An array that is C-contiguous, aligned, in the machine's byte
/// order and of the type `dtype` is not copied. Anything else is converted: floats may be rounded, other numbers must
/// stay what they are. Throws ValueError for numbers that do not fit, TypeError for floats where integers belong and
/// for what is no numbers; both begin with `what`, the argument's name.
Borrowed borrow(py::handle value, DType dtype, const std::string& what);
/// A tensor with the array's own type if it is one of ours. Throws TypeError for any other.
Borrowed borrow(py::handle value, const std::string& what);

/// The array itself, of numbers or bools, C-contiguous and in little-endian. Throws TypeError that begins with `what`.
py::array plain_array(py::handle value, const std::string& what);

/// An array over the tensor's memory, which it owns a share of: nothing is copied.
py::array to_array(const Tensor& tensor);
/// An array over the tensor's memory that cannot be written to.
py::array to_view(const Tensor& tensor);

/// The items of a dictionary, each with references of its own: another thread may change the dictionary whenever the
/// interpreter's lock is open, also within NumPy.
std::vector<std::pair<py::object, py::object>> items_of(const py::dict& dictionary);

/// A copy of the numbers of a dictionary of arrays.
NamedTensors copy_of(const py::dict& arrays);
/// A dictionary of arrays; no copies (to_array()).
py::dict to_arrays(const NamedTensors& tensors);
py::list to_arrays(const std::vector<Tensor>& tensors);

py::tuple to_tuple(const Shape& shape);

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
