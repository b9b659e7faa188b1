#include "core/graph/attribute_json.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/graph/attributes.h"
#include "core/graph/op.h"
#include "core/graph/registry.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/json_text.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"

namespace miniqat {
namespace {

using Json = nlohmann::ordered_json;

class Writer final : public AttributeVisitor {
 public:
  Json result = Json::object();

  void field(std::string_view name, bool& value) override { put(name, value); }
  void field(std::string_view name, std::int64_t& value) override { put(name, value); }
  void field(std::string_view name, double& value) override { put(name, number(value)); }
  void field(std::string_view name, std::string& value) override { put(name, value); }
  void field(std::string_view name, std::vector<std::int64_t>& value) override { put(name, value); }
  void field(std::string_view name, std::array<std::int64_t, 2>& value) override { put(name, value); }
  void field(std::string_view name, std::array<std::int64_t, 4>& value) override { put(name, value); }
  void field(std::string_view name, std::vector<std::array<std::int64_t, 2>>& value) override { put(name, value); }
  void field(std::string_view name, std::vector<double>& value) override {
    if (value.size() == 1) {
      put(name, number(value[0]));
      return;
    }
    Json list = Json::array();
    for (const double element : value) list.push_back(number(element));
    put(name, list);
  }
  void begin(std::string_view name) override { path_.emplace_back(name); }
  void end() override { path_.pop_back(); }

 protected:
  void choice_index(std::string_view name, int& index, std::span<const std::string_view> names) override {
    put(name, std::string(names[index]));
  }

 private:
  /// Whole numbers are written as such: 0 rather than 0.0.
  static Json number(double value) {
    if (!std::isfinite(value)) fail("JSON cannot hold the attribute value ", value);
    if (value == 0 && std::signbit(value)) return value;
    if (value == std::floor(value) && std::abs(value) < 1e15) return static_cast<std::int64_t>(value);
    return value;
  }
  void put(std::string_view name, Json value) {
    Json* object = &result;
    for (const std::string& part : path_) object = &(*object)[part];
    (*object)[std::string(name)] = std::move(value);
  }

  std::vector<std::string> path_;
};

/// Reads from a JSON object and remembers which names the op knows.
class Reader final : public AttributeVisitor {
 public:
  explicit Reader(const Json& attributes) { levels_.push_back({&attributes, "", {}}); }

  void field(std::string_view name, bool& value) override {
    if (const Json* json = find(name)) value = require(*json, json->is_boolean(), name, "true or false").get<bool>();
  }
  void field(std::string_view name, std::int64_t& value) override {
    if (const Json* json = find(name)) value = integer(*json, name);
  }
  void field(std::string_view name, double& value) override {
    if (const Json* json = find(name)) value = require(*json, json->is_number(), name, "a number").get<double>();
  }
  void field(std::string_view name, std::string& value) override {
    if (const Json* json = find(name)) value = require(*json, json->is_string(), name, "a string").get<std::string>();
  }
  void field(std::string_view name, std::vector<std::int64_t>& value) override {
    if (const Json* json = find(name)) value = integers(*json, name);
  }
  void field(std::string_view name, std::array<std::int64_t, 2>& value) override {
    if (const Json* json = find(name)) value = pair(*json, name);
  }
  void field(std::string_view name, std::array<std::int64_t, 4>& value) override {
    const Json* json = find(name);
    if (json == nullptr) return;
    require(*json, json->is_array() && json->size() == value.size(), name, "four whole numbers");
    std::ranges::copy(integers(*json, name), value.begin());
  }
  void field(std::string_view name, std::vector<std::array<std::int64_t, 2>>& value) override {
    const Json* json = find(name);
    if (json == nullptr) return;
    require(*json, json->is_array(), name, "a list of pairs");
    value.clear();
    for (const Json& element : *json) value.push_back(pair(element, name));
  }
  void field(std::string_view name, std::vector<double>& value) override {
    const Json* json = find(name);
    if (json == nullptr) return;
    if (json->is_number()) {
      value = {json->get<double>()};
      return;
    }
    require(*json, json->is_array(), name, "a number or a list of numbers");
    value.clear();
    for (const Json& element : *json)
      value.push_back(require(element, element.is_number(), name, "a number or a list of numbers").get<double>());
  }
  void begin(std::string_view name) override {
    const Json* json = find(name);
    if (json != nullptr) require(*json, json->is_object(), name, "an object");
    levels_.push_back({json, concat(levels_.back().prefix, name, "."), {}});
  }
  void end() override {
    finish();
    levels_.pop_back();
  }
  /// Throws for names that nobody asked for.
  void finish() const {
    const Level& level = levels_.back();
    if (level.object == nullptr) return;
    for (const auto& item : level.object->items())
      if (!level.known.contains(item.key()))
        fail("unknown attribute ", quote(level.prefix + item.key()),
             did_you_mean(item.key(), std::vector<std::string>(level.known.begin(), level.known.end())));
  }

 protected:
  void choice_index(std::string_view name, int& index, std::span<const std::string_view> names) override {
    const Json* json = find(name);
    if (json == nullptr) return;
    const std::string text = require(*json, json->is_string(), name, "a string").get<std::string>();
    const auto found = std::ranges::find(names, text);
    if (found == names.end())
      fail(wrong_choice(concat("attribute ", quote(levels_.back().prefix + std::string(name))), text,
                        {names.begin(), names.end()}));
    index = static_cast<int>(found - names.begin());
  }

 private:
  struct Level {
    const Json* object;
    std::string prefix;
    std::set<std::string> known;
  };

  const Json* find(std::string_view name) {
    Level& level = levels_.back();
    level.known.emplace(name);
    if (level.object == nullptr) return nullptr;
    const auto found = level.object->find(std::string(name));
    return found == level.object->end() ? nullptr : &*found;
  }
  const Json& require(const Json& json, bool right, std::string_view name, std::string_view wanted) const {
    if (!right) fail("attribute \"", levels_.back().prefix, name, "\" must be ", wanted, ", got ", shown(json));
    return json;
  }
  std::int64_t integer(const Json& json, std::string_view name) const {
    const bool fits = json.is_number_integer() && !(json.is_number_unsigned() && json.get<std::uint64_t>() > INT64_MAX);
    return require(json, fits, name, "whole numbers").get<std::int64_t>();
  }
  std::vector<std::int64_t> integers(const Json& json, std::string_view name) const {
    require(json, json.is_array(), name, "a list of whole numbers");
    std::vector<std::int64_t> list;
    for (const Json& element : json) list.push_back(integer(element, name));
    return list;
  }
  std::array<std::int64_t, 2> pair(const Json& json, std::string_view name) const {
    require(json, json.is_array() && json.size() == 2, name, "a pair of whole numbers");
    return {integer(json[0], name), integer(json[1], name)};
  }

  std::vector<Level> levels_;
};

}  // namespace

Json all_attributes_to_json(const Op& op) {
  Writer writer;
  op.write_attributes(writer);
  return writer.result;
}

Json attributes_to_json(const Op& op) {
  Json attributes = all_attributes_to_json(op);
  const Json defaults = all_attributes_to_json(*make_op(op.type()));
  for (const auto& item : defaults.items())
    if (item.key() != "shape" && !op.writes_default(item.key()) && attributes.contains(item.key()) &&
        attributes[item.key()] == item.value())
      attributes.erase(item.key());
  return attributes;
}

void attributes_from_json(Op& op, const Json& attributes) {
  if (!attributes.is_object()) fail("attrs must be an object, got ", shown(attributes));
  Reader reader(attributes);
  op.read_attributes(reader);
  reader.finish();
}

}  // namespace miniqat
