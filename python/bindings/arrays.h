#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <string>
#include <vector>

#include "core/safetensors.h"
#include "core/shape.h"
#include "core/tensor.h"

namespace miniqat::python {

namespace py = pybind11;

/// A tensor that looks at the memory of a NumPy array, and what keeps that memory.
struct Borrowed {
  Tensor tensor;
  py::object keeper;
};

/// The numbers of anything that NumPy makes an array of. An array that is C-contiguous, aligned, in the machine's byte
/// order and of the type `dtype` is not copied; anything else is converted where NumPy's rule "same_kind" allows it.
/// Throws what NumPy throws.
Borrowed borrow(py::handle value, DType dtype);
/// The same, with the array's own type if it is one of ours. Throws Error for any other.
Borrowed borrow(py::handle value);

/// An array over the tensor's memory, which it owns a share of: nothing is copied.
py::array to_array(const Tensor& tensor);
/// An array over the tensor's memory that cannot be written to.
py::array to_view(const Tensor& tensor);
/// The same, of memory that `owner` keeps.
py::array to_view(const Tensor& tensor, py::handle owner);

/// A copy of the numbers of a dictionary of arrays.
NamedTensors copy_of(const py::dict& arrays);
/// A dictionary of arrays; no copies (to_array()).
py::dict to_arrays(const NamedTensors& tensors);
py::list to_arrays(const std::vector<Tensor>& tensors);

/// Any sequence of whole numbers.
Shape shape_of(py::handle extents);
py::tuple to_tuple(const Shape& shape);

}  // namespace miniqat::python
