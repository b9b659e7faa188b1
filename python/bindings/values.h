#pragma once

#include <pybind11/pybind11.h>

#include <nlohmann/json_fwd.hpp>

namespace miniqat::python {

namespace py = pybind11;

/// None, bools, numbers (NumPy's, too), texts, paths, lists, tuples and dictionaries as JSON. Throws TypeError for
/// anything else, ValueError for numbers of more than 64 bits and for what nests deeper than JSON of ours does.
nlohmann::ordered_json to_json(py::handle value);

/// The inverse.
py::object from_json(const nlohmann::ordered_json& json);

}  // namespace miniqat::python
