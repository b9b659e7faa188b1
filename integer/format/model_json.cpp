#include "integer/format/model_json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "core/text/quote.h"
#include "core/text/suggest.h"

namespace miniqat::integer {

using Json = nlohmann::ordered_json;

std::string shown(const Json& json) {
  constexpr std::size_t kLongest = 60;
  if (json.is_object()) return "an object";
  if (json.is_array()) return concat("a list of ", json.size());
  const std::string text = json.dump(-1, ' ', true);
  return text.size() <= kLongest ? text : text.substr(0, kLongest) + "...";
}

std::int64_t json_integer(const Json& json, const std::string& what, std::int64_t low, std::int64_t high) {
  const bool fits = json.is_number_unsigned()
                        ? json.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()}
                        : json.is_number_integer();
  if (!fits || json.get<std::int64_t>() < low || json.get<std::int64_t>() > high)
    fail(what, " must be a whole number from ", low, " to ", high, ", is ", shown(json));
  return json.get<std::int64_t>();
}

JsonFields::JsonFields(const Json& json) : json_(json) {
  if (!json.is_object()) fail("must be an object, is ", shown(json));
}

const Json& JsonFields::at(const char* key) {
  taken_.emplace_back(key);
  const auto found = json_.find(key);
  if (found == json_.end()) fail("lacks ", quote(key));
  return *found;
}

std::string JsonFields::text(const char* key) {
  const Json& json = at(key);
  if (!json.is_string()) fail(key, " must be a text, is ", shown(json));
  return json.get<std::string>();
}

std::int64_t JsonFields::integer(const char* key, std::int64_t low, std::int64_t high) {
  return json_integer(at(key), key, low, high);
}

std::int32_t JsonFields::int32(const char* key) {
  using Limits = std::numeric_limits<std::int32_t>;
  return static_cast<std::int32_t>(integer(key, Limits::min(), Limits::max()));
}

float JsonFields::number(const char* key) {
  const Json& json = at(key);
  if (!json.is_number() || !(std::abs(json.get<double>()) <= double{std::numeric_limits<float>::max()}))
    fail(key, " must be a number that a float can hold, is ", shown(json));
  return static_cast<float>(json.get<double>());
}

const Json& JsonFields::list(const char* key) {
  const Json& json = at(key);
  if (!json.is_array()) fail(key, " must be a list, is ", shown(json));
  return json;
}

std::vector<std::int64_t> JsonFields::integers(const char* key, std::int64_t low, std::int64_t high) {
  std::vector<std::int64_t> numbers;
  for (const Json& number : list(key)) numbers.push_back(json_integer(number, concat("in ", key, " each"), low, high));
  return numbers;
}

std::vector<std::string> JsonFields::texts(const char* key) {
  std::vector<std::string> texts;
  for (const Json& text : list(key)) {
    if (!text.is_string()) fail("in ", key, " each must be a text, one is ", shown(text));
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

void JsonFields::done() const {
  for (const auto& [key, value] : json_.items())
    if (std::ranges::find(taken_, key) == taken_.end())
      fail("has the unknown key ", shown(Json(key)), did_you_mean(key, taken_));
}

using Json = nlohmann::ordered_json;

namespace {

/// The extents of windows and paddings; Model::check() has narrower limits.
constexpr std::int64_t kLargestInteger = INT32_MAX;

/// Adds what is particular to an action to the JSON of its operation: its keys() (integer/ops/action.h).
class ActionWriter {
 public:
  ActionWriter(Json& json, ListWriter& lists) : json_(json), lists_(lists) {}

  /// A text, whole numbers, pairs of them.
  void operator()(const char* key, const auto& value) { json_[key] = value; }
  void operator()(const char* key, int value, int /*low*/, int /*high*/) { json_[key] = value; }
  void operator()(const char* key, const Shape& shape) { json_[key] = shape.to_vector(); }
  void operator()(const Window2d& window) {
    const auto& [rows, columns] = window;
    json_["window"] = {rows.window, columns.window};
    json_["strides"] = {rows.stride, columns.stride};
    json_["dilations"] = {rows.dilation, columns.dilation};
    json_["paddings"] = {{rows.pad_before, rows.pad_after}, {columns.pad_before, columns.pad_after}};
  }
  void operator()(const char* key, const Multiplier& multiplier) {
    json_[key] = {{"mantissa", multiplier.mantissa}, {"shift", multiplier.shift}};
  }
  void operator()(const char* key, const SharedMultipliers& multipliers) {
    json_[key] = {{"mantissas", multipliers.mantissas}, {"shift", multipliers.shift}};
  }
  void operator()(const char* key, const std::vector<Multiplier>& multipliers) {
    std::vector<std::int32_t> mantissas;
    std::vector<std::uint8_t> shifts;
    for (const Multiplier& multiplier : multipliers) {
      mantissas.push_back(multiplier.mantissa);
      shifts.push_back(static_cast<std::uint8_t>(multiplier.shift));
    }
    Json json;
    json["mantissas"] = lists_.int32_list(mantissas);
    json["shifts"] = lists_.unsigned_list(shifts, 8);
    json_[key] = std::move(json);
  }

  /// Lists that may be long; those with `bits` of integers in [0, 2^bits - 1].
  void list(const char* key, const std::vector<std::int32_t>& values) { json_[key] = lists_.int32_list(values); }
  void list(const char* key, const std::vector<float>& values) { json_[key] = lists_.float32_list(values); }
  void list(const char* key, const auto& values, int bits) {
    json_[key] = lists_.unsigned_list(std::vector<std::uint8_t>(values.begin(), values.end()), bits);
  }

 private:
  Json& json_;
  ListWriter& lists_;
};

Shape read_shape(JsonFields& fields, const char* key) {
  return Shape(std::span<const std::int64_t>(fields.integers(key, 0, Shape::kMaxElements)));
}

/// Takes what is particular to an action out of the JSON of its operation.
class ActionReader {
 public:
  /// Extents of images come from the shapes of the tensors.
  ActionReader(JsonFields& fields, ListReader& lists, const Shape& input, const Shape& output)
      : fields_(fields), lists_(lists), input_(input), output_(output) {}

  void operator()(const char* key, std::string& text) { text = fields_.text(key); }
  void operator()(const char* key, int& value, int low, int high) {
    value = static_cast<int>(fields_.integer(key, low, high));
  }
  void operator()(const char* key, std::vector<std::int64_t>& values) {
    values = fields_.integers(key, 0, kLargestInteger);
  }
  void operator()(const char* key, std::vector<std::array<std::int64_t, 2>>& pairs) {
    const std::string what = concat("in ", key, " each");
    for (const Json& pair : fields_.list(key)) {
      if (!pair.is_array() || pair.size() != 2) fail(key, " must be pairs of numbers, one is ", shown(pair));
      pairs.push_back(
          {json_integer(pair[0], what, 0, kLargestInteger), json_integer(pair[1], what, 0, kLargestInteger)});
    }
  }
  void operator()(const char* key, Shape& shape) { shape = read_shape(fields_, key); }
  void operator()(Window2d& window);
  void operator()(const char* key, Multiplier& multiplier) {
    multiplier = fields_.object(key, [](JsonFields& fields) {
      return Multiplier{.mantissa = fields.int32("mantissa"), .shift = fields.int32("shift")};
    });
  }
  void operator()(const char* key, SharedMultipliers& multipliers) {
    multipliers = fields_.object(key, [](JsonFields& fields) {
      const std::vector<std::int64_t> mantissas = fields.integers("mantissas", 0, SharedMultipliers::kLargestMantissa);
      return SharedMultipliers{.mantissas = {mantissas.begin(), mantissas.end()}, .shift = fields.int32("shift")};
    });
  }
  void operator()(const char* key, std::vector<Multiplier>& multipliers);

  void list(const char* key, std::vector<std::int32_t>& values) { values = int32_list(fields_, key); }
  void list(const char* key, std::vector<float>& values) {
    values = fields_.value(key, [this](const Json& list) { return lists_.float32_list(list); });
  }
  void list(const char* key, auto& values, int bits) {
    const std::vector<std::uint8_t> read = unsigned_list(fields_, key, bits);
    values.assign(read.begin(), read.end());
  }

 private:
  std::array<std::int64_t, 2> pair(const char* key) {
    const std::vector<std::int64_t> pair = fields_.integers(key, 0, kLargestInteger);
    if (pair.size() != 2) fail(key, " must be two numbers, are ", pair.size());
    return {pair[0], pair[1]};
  }
  std::vector<std::uint8_t> unsigned_list(JsonFields& fields, const char* key, int bits) {
    return fields.value(key, [&](const Json& list) { return lists_.unsigned_list(list, bits); });
  }
  std::vector<std::int32_t> int32_list(JsonFields& fields, const char* key) {
    return fields.value(key, [&](const Json& list) { return lists_.int32_list(list); });
  }

  JsonFields& fields_;
  ListReader& lists_;
  const Shape& input_;
  const Shape& output_;
};

void ActionReader::operator()(Window2d& window) {
  const auto windows = pair("window"), strides = pair("strides"), dilations = pair("dilations");
  std::vector<std::array<std::int64_t, 2>> paddings;
  (*this)("paddings", paddings);
  if (paddings.size() != 2) fail("paddings must be two pairs, are ", paddings.size());
  if (input_.rank() != 3) fail("takes an image [h, w, c], not ", input_);
  for (const int i : {0, 1})
    (i == 0 ? window.rows : window.columns) = WindowAxis{.input = input_[i],
                                                         .window = windows[i],
                                                         .stride = strides[i],
                                                         .dilation = dilations[i],
                                                         .output = output_.rank() == 3 ? output_[i] : 1,
                                                         .pad_before = paddings[i][0],
                                                         .pad_after = paddings[i][1]};
}

void ActionReader::operator()(const char* key, std::vector<Multiplier>& multipliers) {
  multipliers = fields_.object(key, [this](JsonFields& fields) {
    const std::vector<std::int32_t> mantissas = int32_list(fields, "mantissas");
    const std::vector<std::uint8_t> shifts = unsigned_list(fields, "shifts", 8);
    if (mantissas.size() != shifts.size()) fail(mantissas.size(), " mantissas and ", shifts.size(), " shifts");
    std::vector<Multiplier> read;
    for (std::size_t i = 0; i < shifts.size(); ++i) read.push_back({.mantissa = mantissas[i], .shift = shifts[i]});
    return read;
  });
}

/// Whether the type is that of the alternative, which then becomes the action.
template <class Kind>
bool reads(const std::string& type, ActionReader& json, Action& action) {
  Kind read;
  if constexpr (std::is_same_v<Kind, Layer>) {
    const auto kind = std::ranges::find(kLayerKindNames, type);
    if (kind == kLayerKindNames.end()) return false;
    read.kind = static_cast<LayerKind>(kind - kLayerKindNames.begin());
  } else {
    if (type != Kind::kType) return false;
  }
  Kind::keys(read, json);
  action = std::move(read);
  return true;
}

template <class... Kinds>
void read_action(const std::string& type, ActionReader& json, std::variant<Kinds...>& action) {
  if (!(reads<Kinds>(type, json, action) || ...)) fail("the type ", shown(Json(type)), " is unknown");
}

constexpr const char* kClassNames = "class_names";
constexpr const char* kTask = "task";

/// A standard's keys: those of means and of deviations.
struct StandardKeys {
  const char* mean;
  const char* deviation;
};
constexpr StandardKeys kInputStandard = {"input_mean", "input_std"};
constexpr StandardKeys kOutputStandard = {"output_mean", "output_std"};

void put_standard(Json& json, const StandardKeys& keys, const std::optional<Standard>& standard, ListWriter& lists) {
  if (!standard) return;
  json[keys.mean] = lists.float32_list(standard->mean);
  json[keys.deviation] = lists.float32_list(standard->deviation);
}

TensorInfo read_tensor(const Json& json) {
  JsonFields fields(json);
  TensorInfo tensor{.name = fields.text("name"), .shape = read_shape(fields, "shape"), .grid = {}};
  tensor.grid = {.scale = fields.number("scale"),
                 .zero_point = fields.int32("zero_point"),
                 .bits = static_cast<int>(fields.integer("bits", 2, 8))};
  fields.done();
  return tensor;
}

/// Reads operations and finds the tensors that they name.
class ModelReader {
 public:
  explicit ModelReader(ListReader& lists) : lists_(lists) {}

  Model read(const Json& json) {
    JsonFields fields(json);
    model_.name = fields.text("name");
    for (const Json& tensor : fields.list("tensors"))
      within(miniqat::concat("tensor ", model_.tensors.size()), [&] { add_tensor(read_tensor(tensor)); });
    model_.input = index_of(fields.text("input"));
    model_.output = index_of(fields.text("output"));
    // Keys of files that know their classes, of other tasks than those, and of numbers.
    if (json.contains(kClassNames)) model_.class_names = fields.texts(kClassNames);
    if (json.contains(kTask)) model_.task = fields.text(kTask);
    model_.input_standard = read_standard(json, fields, kInputStandard);
    model_.output_standard = read_standard(json, fields, kOutputStandard);
    for (const Json& operation : fields.list("operations"))
      within(miniqat::concat("operation ", model_.operations.size()), [&] { add_operation(operation); });
    fields.done();
    return std::move(model_);
  }

 private:
  void add_tensor(TensorInfo tensor) {
    if (!indices_.emplace(tensor.name, static_cast<int>(model_.tensors.size())).second)
      fail("a second tensor is called ", shown(Json(tensor.name)));
    model_.tensors.push_back(std::move(tensor));
  }

  std::optional<Standard> read_standard(const Json& json, JsonFields& fields, const StandardKeys& keys) {
    if (!json.contains(keys.mean) && !json.contains(keys.deviation)) return {};
    const auto list = [&](const char* key) {
      return fields.value(key, [this](const Json& place) { return lists_.float32_list(place); });
    };
    Standard standard{.mean = list(keys.mean), .deviation = {}};
    standard.deviation = list(keys.deviation);
    return standard;
  }

  void add_operation(const Json& json) {
    JsonFields fields(json);
    Operation operation{.name = fields.text("name"), .action = {}, .inputs = {}};
    const std::string type = fields.text("type");
    for (const std::string& name : fields.texts("inputs")) operation.inputs.push_back(index_of(name));
    if (operation.inputs.empty()) fail("has no inputs");
    operation.output = index_of(fields.text("output"));
    const std::vector<std::int64_t> clamp = fields.integers("clamp", 0, 255);
    if (clamp.size() != 2) fail("clamp must be two numbers, are ", clamp.size());
    operation.clamp = {.min = static_cast<std::int32_t>(clamp[0]), .max = static_cast<std::int32_t>(clamp[1])};
    ActionReader reader(fields, lists_, model_.input_of(operation).shape, model_.output_of(operation).shape);
    read_action(type, reader, operation.action);
    fields.done();
    model_.operations.push_back(std::move(operation));
  }

  int index_of(const std::string& name) const {
    const auto found = indices_.find(name);
    if (found == indices_.end()) fail("no tensor is called ", shown(Json(name)));
    return found->second;
  }

  ListReader& lists_;
  Model model_;
  std::map<std::string, int> indices_;
};

}  // namespace

Json model_to_json(const Model& model, ListWriter& lists) {
  Json json;
  json["name"] = model.name;
  json["input"] = model.tensor(model.input).name;
  json["output"] = model.tensor(model.output).name;
  if (!model.class_names.empty()) json[kClassNames] = model.class_names;
  if (!model.task.empty()) json[kTask] = model.task;
  put_standard(json, kInputStandard, model.input_standard, lists);
  put_standard(json, kOutputStandard, model.output_standard, lists);
  json["tensors"] = Json::array();
  for (const TensorInfo& tensor : model.tensors)
    json["tensors"].push_back({{"name", tensor.name},
                               {"shape", tensor.shape.to_vector()},
                               {"scale", tensor.grid.scale},
                               {"zero_point", tensor.grid.zero_point},
                               {"bits", tensor.grid.bits}});
  json["operations"] = Json::array();
  for (const Operation& operation : model.operations) {
    Json entry;
    entry["name"] = operation.name;
    entry["type"] = type_name(operation.action);
    entry["inputs"] = Json::array();
    for (const int i : operation.inputs) entry["inputs"].push_back(model.tensor(i).name);
    entry["output"] = model.output_of(operation).name;
    entry["clamp"] = {operation.clamp.min, operation.clamp.max};
    ActionWriter writer(entry, lists);
    std::visit([&writer](const auto& action) { action.keys(action, writer); }, operation.action);
    json["operations"].push_back(std::move(entry));
  }
  return json;
}

Model model_from_json(const Json& json, ListReader& lists) { return ModelReader(lists).read(json); }

}  // namespace miniqat::integer
