#include "python/bindings/values.h"

#include "core/text/json.h"
#include "core/text/json_text.h"
#include "python/bindings/arrays.h"

namespace miniqat::python {
namespace {

using Json = nlohmann::ordered_json;

Json value_to_json(py::handle value, std::size_t depth);

Json list_to_json(py::handle list, std::size_t depth) {
  Json json = Json::array();
  for (const py::handle item : list) json.push_back(value_to_json(item, depth));
  return json;
}

Json object_to_json(const py::dict& dictionary, std::size_t depth) {
  Json json = Json::object();
  for (const auto& [key, value] : items_of(dictionary)) json[std::string(py::str(key))] = value_to_json(value, depth);
  return json;
}

Json integer_to_json(py::handle value) {
  const py::int_ number(py::reinterpret_borrow<py::object>(value));
  int is_beyond = 0;
  const std::int64_t integer = PyLong_AsLongLongAndOverflow(number.ptr(), &is_beyond);
  if (is_beyond != 0)
    throw py::value_error("the integer " + std::string(py::str(py::object(number))) + " is too large");
  return integer;
}

/// A list may hold itself.
Json value_to_json(py::handle value, std::size_t depth) {
  if (depth > kDeepestJson) throw py::value_error("lists and dictionaries are nested too deep");
  if (value.is_none()) return nullptr;
  if (py::isinstance<py::bool_>(value)) return value.cast<bool>();
  if (py::isinstance<py::str>(value)) return value.cast<std::string>();
  if (py::isinstance<py::dict>(value)) return object_to_json(py::reinterpret_borrow<py::dict>(value), depth + 1);
  if (py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value)) return list_to_json(value, depth + 1);
  if (py::hasattr(value, "__fspath__")) return value_to_json(py::object(value.attr("__fspath__")()), depth + 1);
  if (PyIndex_Check(value.ptr()) != 0) return integer_to_json(value);
  if (PyNumber_Check(value.ptr()) != 0) return py::float_(py::reinterpret_borrow<py::object>(value)).cast<double>();
  throw py::type_error("expected None, a bool, a number, a text, a path, a list or a dictionary, not " +
                       std::string(py::str(py::type::of(value).attr("__name__"))));
}

}  // namespace

Json to_json(py::handle value) { return value_to_json(value, 0); }

py::object from_json(const Json& json) {
  if (json.is_null()) return py::none();
  if (json.is_boolean()) return py::bool_(json.get<bool>());
  if (json.is_number_integer()) return py::int_(json.get<std::int64_t>());
  if (json.is_number()) return py::float_(json.get<double>());
  if (json.is_string()) return py::str(json.get<std::string>());
  if (json.is_array()) {
    py::list list;
    for (const Json& item : json) list.append(from_json(item));
    return list;
  }
  py::dict dictionary;
  for (const auto& item : json.items()) dictionary[py::str(item.key())] = from_json(item.value());
  return dictionary;
}

}  // namespace miniqat::python
