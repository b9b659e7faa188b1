#include "training/run/json_shape.h"

#include <map>

#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/json_text.h"
#include "core/text/quote.h"

namespace miniqat::training {
namespace {

using Json = nlohmann::ordered_json;

bool is_of(const Json& json, const std::string& type) {
  if (type == "a text") return json.is_string();
  if (type == "a text or null") return json.is_string() || json.is_null();
  if (type == "a number") return json.is_number();
  if (type == "a number or null") return json.is_number() || json.is_null();
  if (type == "a whole number") return json.is_number_integer();
  if (type == "true or false") return json.is_boolean();
  if (type == "an object") return json.is_object();
  if (type == "a list") return json.is_array();
  return true;
}

std::string type_of_shape(const Json& shape) {
  return shape.is_object() ? "an object" : shape.is_array() ? "a list" : shape.get<std::string>();
}

/// `place` is "" for the whole file.
void require_part(const Json& json, const Json& shape, const std::string& source, const std::string& place) {
  const std::string type = type_of_shape(shape);
  if (!is_of(json, type))
    fail(source, ": ", place.empty() ? "the file" : place, " must be ", type, ", is ", shown(json));
  if (shape.is_array())
    for (std::size_t i = 0; i < json.size(); ++i) require_part(json[i], shape[0], source, concat(place, "[", i, "]"));
  if (!shape.is_object()) return;
  for (const auto& item : shape.items()) {
    const bool may_be_missing = item.key().ends_with('?');
    const std::string key = item.key().substr(0, item.key().size() - (may_be_missing ? 1 : 0));
    const std::string path = place.empty() ? key : concat(place, ".", key);
    const auto found = json.find(key);
    if (found == json.end() && !may_be_missing) fail(source, ": ", path, " is missing");
    if (found != json.end()) require_part(*found, item.value(), source, path);
  }
}

Json shape_of_verification() {
  const Json tensor = {{"count", "a number"}, {"equal", "a number"}, {"largest_difference", "a number"}};
  const Json answers = {{"name", "a text"}, {"examples", "a number"}, {"outputs", tensor}};
  const Json layer = {{"operation", "a text"}, {"type", "a text"}, {"alone", tensor}, {"end_to_end", tensor}};
  return {{"examples", "a number"},
          {"reference_examples", "a number"},
          {"simulated", answers},
          {"integer", answers},
          {"runtimes", Json::array({answers})},
          {"left_out", Json::array({"a text"})},
          {"failed", Json::array({"a text"})},
          {"layers", Json::array({layer})}};
}

}  // namespace

void require_shape(const Json& json, const Json& shape, const std::string& source) {
  require_part(json, shape, source, "");
}

const Json& shape_of_sensitivity() {
  // A loss that is NaN is null in a file.
  static const Json kMeasurement = {{"bits", "a whole number"},
                                    {"loss_increase?", "a number or null"},
                                    {"accuracy?", "a number or null"},
                                    {"snr_db?", "a number or null"}};
  static const Json kQuantizer = {{"layer", "a text"}, {"kind", "a text"}, {"alone", Json::array({kMeasurement})}};
  static const Json kShape = {{"quantizers", Json::array({kQuantizer})}};
  return kShape;
}

const Json& shape_of_file(const std::filesystem::path& file) {
  static const Json kAnything = "anything";
  static const std::map<std::string, Json> kShapes = {
      {"summary.json", {{"complete?", "true or false"}, {"steps?", "a whole number"}, {"machine?", "an object"}}},
      {"quantize.json", {{"complete?", "true or false"}, {"rows?", Json::array({{{"name", "a text"}}})}}},
      {"machine.json", "an object"},
      {"commands.json", Json::array({{{"command", "a text or null"}}})},
      {"dataset.json", "an object"},
      {"skipped_files.json", Json::array({{{"why", "a text"}}})},
      {"verify.json", shape_of_verification()}};
  const auto found = kShapes.find(file.filename().string());
  return found == kShapes.end() ? kAnything : found->second;
}

}  // namespace miniqat::training
