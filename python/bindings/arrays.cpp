#include "python/bindings/arrays.h"

#include <pybind11/stl.h>

#include "core/text/error.h"
#include "python/bindings/interpreter.h"

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

bool is_masked(py::handle value) {
  static const py::handle masked_array = py::object(py::module_::import("numpy.ma").attr("MaskedArray")).release();
  return py::isinstance<py::array>(value) && py::isinstance(value, masked_array);
}

/// NumPy would drop the mask, also of the arrays in a list.
void require_no_mask(py::handle value, const std::string& what) {
  bool found = is_masked(value);
  if (py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value))
    for (const py::handle item : value) found = found || is_masked(item);
  if (found)
    throw py::type_error(
        concat(what, " is a masked array, whose mask would be lost: give .filled(value) or .data of it"));
}

py::array array_of(py::handle value, const std::string& what) {
  require_no_mask(value, what);
  py::array array = in_python([&] { return py::array::ensure(value); });
  if (!array || std::string_view("biuf").find(array.dtype().kind()) == std::string_view::npos)
    throw py::type_error(concat(what, " must be an array or numbers, not ",
                                array && py::isinstance<py::array>(value)
                                    ? concat("an array of ", std::string(py::str(py::object(array.dtype()))))
                                    : std::string(py::str(py::object(py::type::of(value).attr("__name__"))))));
  return array;
}

std::string type_name(const py::array& array) { return py::str(py::object(array.dtype().attr("name"))); }

bool is_true(const py::object& array) { return py::bool_(call_method(array, "all")); }

/// Checks integers and bools. An array without elements has no extremes.
void require_between(const py::array& array, const py::object& least, const py::object& most, const std::string& what,
                     const std::string& type) {
  if (array.size() == 0) return;
  for (const char* extreme : {"min", "max"}) {
    const py::object value = py::int_(call_method(array, extreme));
    if (value < least || value > most)
      throw py::value_error(concat(what, " holds ", std::string(py::str(value)), ", which ", type,
                                   " does not: it holds ", std::string(py::str(least)), " to ",
                                   std::string(py::str(most))));
  }
}

/// Integers that floats of `wanted` hold exactly, or else ValueError.
void require_exact(const py::array& array, const py::array& converted, const std::string& what) {
  constexpr std::int64_t kBeyond = std::int64_t{1} << 62;
  require_between(array, py::int_(-kBeyond), py::int_(kBeyond), what, "a float");
  const py::object back = call_method(converted, "astype", py::make_tuple("int64"));
  if (!is_true(py::reinterpret_steal<py::object>(PyObject_RichCompare(back.ptr(), array.ptr(), Py_EQ))))
    throw py::value_error(concat(what, " holds integers that ", type_name(converted), " does not hold exactly"));
}

/// What was finite must be finite.
void require_finite(const py::array& array, const py::array& converted, const std::string& what) {
  const py::object is_finite = py::module_::import("numpy").attr("isfinite");
  const py::object before = call_python(is_finite, py::make_tuple(array));
  const py::object after = call_python(is_finite, py::make_tuple(converted));
  if (!is_true(py::reinterpret_steal<py::object>(PyObject_RichCompare(before.ptr(), after.ptr(), Py_EQ))))
    throw py::value_error(concat(what, " holds numbers that are too large for ", type_name(converted)));
}

/// NumPy gives no warnings while it lives: there are errors instead.
class Silence {
 public:
  Silence() : state_(py::module_::import("numpy").attr("errstate")(py::arg("all") = "ignore")) {
    state_.attr("__enter__")();
  }
  ~Silence() { state_.attr("__exit__")(py::none(), py::none(), py::none()); }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  py::object state_;
};

py::array converted(const py::array& array, const py::dtype& wanted, const std::string& what) {
  const char from = array.dtype().kind(), to = wanted.kind();
  const std::string name = py::str(py::object(wanted.attr("name")));
  if (from == 'f' && to != 'f')
    throw py::type_error(concat(what, " must be integers of the type ", name, ", not ", type_name(array)));
  if (from != 'f' && to != 'f') {
    const py::object about = py::module_::import("numpy").attr("iinfo")(wanted);
    require_between(array, about.attr("min"), about.attr("max"), what, name);
  }
  const py::array made = [&] {
    const Silence silence;
    return py::array(call_method(array, "astype", py::make_tuple(wanted, "C", "unsafe")));
  }();
  if (from == 'f') require_finite(array, made, what);
  if (from != 'f' && to == 'f') require_exact(array, made, what);
  return made;
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

Borrowed borrow(py::handle value, DType dtype, const std::string& what) {
  py::array array = array_of(value, what);
  const py::dtype wanted{std::string(name_of(dtype))};
  if (!array.dtype().equal(wanted)) array = converted(array, wanted, what);
  if (!fits(array))
    array = call_method(py::module_::import("numpy"), "require",
                        py::make_tuple(array, py::none(), py::make_tuple("C", "A")));
  return borrowed(std::move(array), dtype);
}

Borrowed borrow(py::handle value, const std::string& what) {
  const py::array array = array_of(value, what);
  const std::string name = type_name(array);
  for (const DType dtype :
       {DType::kFloat32, DType::kFloat64, DType::kInt64, DType::kInt32, DType::kInt8, DType::kUInt8})
    if (name == name_of(dtype)) return borrow(array, dtype, what);
  throw py::type_error(
      concat(what, " is of the type ", name, "; float32, float64, int64, int32, int8 and uint8 can be taken"));
}

py::array plain_array(py::handle value, const std::string& what) {
  const py::array array = array_of(value, what);
  return call_method(py::module_::import("numpy"), "ascontiguousarray",
                     py::make_tuple(array, array.dtype().attr("newbyteorder")("<")));
}

py::array to_array(const Tensor& tensor) { return array_over(tensor, share_of(tensor)); }

py::array to_view(const Tensor& tensor) { return read_only(to_array(tensor)); }

std::vector<std::pair<py::object, py::object>> items_of(const py::dict& dictionary) {
  std::vector<std::pair<py::object, py::object>> items;
  for (const auto& [key, value] : dictionary)
    items.emplace_back(py::reinterpret_borrow<py::object>(key), py::reinterpret_borrow<py::object>(value));
  return items;
}

NamedTensors copy_of(const py::dict& arrays) {
  NamedTensors tensors;
  for (const auto& [key, value] : items_of(arrays)) {
    if (!py::isinstance<py::str>(key)) throw py::type_error("arrays must be under names, which are texts");
    const std::string name = py::str(key);
    tensors.emplace(name, borrow(value, name).tensor.clone());
  }
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

py::tuple to_tuple(const Shape& shape) {
  py::tuple extents(shape.rank());
  for (int i = 0; i < shape.rank(); ++i) extents[static_cast<std::size_t>(i)] = py::int_(shape[i]);
  return extents;
}

}  // namespace miniqat::python
