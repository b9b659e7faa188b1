#include "python/bindings/values.h"

#include "core/text/json.h"

namespace miniqat::python {
namespace {

using Json = nlohmann::ordered_json;

Json list_to_json(py::handle list) {
  Json json = Json::array();
  for (const py::handle item : list) json.push_back(to_json(item));
  return json;
}

Json object_to_json(const py::dict& dictionary) {
  Json json = Json::object();
  for (const auto& [key, value] : dictionary) json[std::string(py::str(key))] = to_json(value);
  return json;
}

}  // namespace

Json to_json(py::handle value) {
  if (value.is_none()) return nullptr;
  if (py::isinstance<py::bool_>(value)) return value.cast<bool>();
  if (py::isinstance<py::str>(value)) return value.cast<std::string>();
  if (py::isinstance<py::dict>(value)) return object_to_json(py::reinterpret_borrow<py::dict>(value));
  if (py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value)) return list_to_json(value);
  if (PyIndex_Check(value.ptr()) != 0) return py::int_(py::reinterpret_borrow<py::object>(value)).cast<std::int64_t>();
  if (PyNumber_Check(value.ptr()) != 0) return py::float_(py::reinterpret_borrow<py::object>(value)).cast<double>();
  throw py::type_error("expected None, a bool, a number, a text, a list or a dictionary, not " +
                       std::string(py::str(py::type::of(value).attr("__name__"))));
}

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
