#include "python/bindings/arrays.h"

#include <pybind11/stl.h>

#include <array>

#include "core/error.h"

namespace miniqat::python {
namespace {

/// Extents in elements are strides in bytes for NumPy, from the last axis to the first.
py::array array_over(const Tensor& tensor, py::handle owner) {
  const std::vector<std::int64_t> extents = tensor.shape().to_vector();
  return py::array(py::dtype(std::string(name_of(tensor.dtype()))),
                   std::vector<py::ssize_t>(extents.begin(), extents.end()), tensor.raw(), owner);
}

/// Owns a share of the tensor's memory.
py::capsule share_of(const Tensor& tensor) {
  return py::capsule(new Tensor(tensor), [](void* memory) { delete static_cast<Tensor*>(memory); });
}

py::array read_only(py::array array) {
  array.attr("setflags")(py::arg("write") = false);
  return array;
}

py::array array_of(py::handle value) {
  py::array array = py::array::ensure(value);
  if (!array) throw py::type_error("expected an array or numbers");
  return array;
}

Shape shape_of(const py::array& array) {
  const std::vector<std::int64_t> extents(array.shape(), array.shape() + array.ndim());
  return Shape(std::span<const std::int64_t>(extents));
}

/// `array` must be C-contiguous, aligned and of that type. NumPy's sessions read only.
Borrowed borrowed(py::array array, DType dtype) {
  const TensorSpec spec{shape_of(array), dtype};
  void* const memory = const_cast<void*>(array.data());
  return {Tensor::view(memory, spec), std::move(array)};
}

bool fits(const py::array& array) {
  constexpr int kContiguousAndAligned =
      py::detail::npy_api::NPY_ARRAY_C_CONTIGUOUS_ | py::detail::npy_api::NPY_ARRAY_ALIGNED_;
  return (array.flags() & kContiguousAndAligned) == kContiguousAndAligned;
}

}  // namespace

Borrowed borrow(py::handle value, DType dtype) {
  py::array array = array_of(value);
  const py::dtype wanted{std::string(name_of(dtype))};
  if (!array.dtype().equal(wanted) || !fits(array)) {
    array = array.attr("astype")(wanted, "C", "same_kind");
    array = py::module_::import("numpy").attr("require")(array, py::none(), py::make_tuple("C", "A"));
  }
  return borrowed(std::move(array), dtype);
}

Borrowed borrow(py::handle value) {
  const py::array array = array_of(value);
  const std::string name = py::str(py::object(array.dtype().attr("name")));
  return borrow(array, dtype_from_name(name));
}

py::array to_array(const Tensor& tensor) { return array_over(tensor, share_of(tensor)); }

py::array to_view(const Tensor& tensor) { return read_only(to_array(tensor)); }

py::array to_view(const Tensor& tensor, py::handle owner) { return read_only(array_over(tensor, owner)); }

NamedTensors copy_of(const py::dict& arrays) {
  NamedTensors tensors;
  for (const auto& [name, value] : arrays) tensors.emplace(py::str(name), borrow(value).tensor.clone());
  return tensors;
}

py::dict to_arrays(const NamedTensors& tensors) {
  py::dict arrays;
  for (const auto& [name, tensor] : tensors) arrays[py::str(name)] = to_array(tensor);
  return arrays;
}

py::list to_arrays(const std::vector<Tensor>& tensors) {
  py::list arrays;
  for (const Tensor& tensor : tensors) arrays.append(to_array(tensor));
  return arrays;
}

Shape shape_of(py::handle extents) {
  return Shape(std::span<const std::int64_t>(py::cast<std::vector<std::int64_t>>(extents)));
}

py::tuple to_tuple(const Shape& shape) {
  py::tuple extents(shape.rank());
  for (int i = 0; i < shape.rank(); ++i) extents[static_cast<std::size_t>(i)] = py::int_(shape[i]);
  return extents;
}

}  // namespace miniqat::python
