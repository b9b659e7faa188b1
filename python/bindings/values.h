#pragma once

#include <pybind11/pybind11.h>

#include <nlohmann/json_fwd.hpp>

namespace miniqat::python {

namespace py = pybind11;

/// None, bools, numbers (NumPy's, too), texts, lists, tuples and dictionaries as JSON. Throws TypeError for anything
/// else.
nlohmann::ordered_json to_json(py::handle value);

/// The inverse.
py::object from_json(const nlohmann::ordered_json& json);

}  // namespace miniqat::python
