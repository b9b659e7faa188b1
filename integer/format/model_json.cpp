#include "integer/format/model_json.h"

#include <map>

#include "core/error.h"
#include "core/text/json.h"
#include "integer/format/json_fields.h"

namespace miniqat::integer {
namespace {

using Json = nlohmann::ordered_json;

/// The extents of windows and paddings; Model::check() has narrower limits.
constexpr std::int64_t kLargestInteger = INT32_MAX;

/// Adds what is particular to an action to the JSON of its operation.
class ActionWriter {
 public:
  ActionWriter(Json& json, ListWriter& lists) : json_(json), lists_(lists) {}

  void operator()(const Layer& layer) const {
    if (layer.kind != LayerKind::kFullyConnected) write(layer.window);
    json_["filter"] = layer.filter.to_vector();
    json_["weight_bits"] = layer.weight_bits;
    json_["weights"] = lists_.unsigned_list(layer.weights, layer.weight_bits);
    json_["weight_scales"] = lists_.float32_list(layer.weight_scales);
    const std::vector<std::uint8_t> zero_points(layer.weight_zero_points.begin(), layer.weight_zero_points.end());
    json_["weight_zero_points"] = lists_.unsigned_list(zero_points, 8);
    json_["bias"] = lists_.int32_list(layer.bias);
    write(layer.multipliers);
  }
  void operator()(const Add& add) const {
    json_["multipliers"] = {{"mantissas", add.multipliers.mantissas}, {"shift", add.multipliers.shift}};
  }
  void operator()(const Mul& mul) const { write(mul.multiplier); }
  void operator()(const Rescale& rescale) const { write(rescale.multiplier); }
  void operator()(const Concat& concat) const {
    json_["axis"] = concat.axis;
    write(concat.multipliers);
  }
  void operator()(const AveragePool& pool) const {
    write(pool.window);
    write(pool.multipliers);
  }
  void operator()(const MaxPool& pool) const { write(pool.window); }
  void operator()(const Reshape&) const {}
  void operator()(const Pad& pad) const { json_["paddings"] = pad.paddings; }
  void operator()(const Slice& slice) const {
    json_["starts"] = slice.starts;
    json_["steps"] = slice.steps;
  }
  void operator()(const Lookup& lookup) const {
    json_["function"] = lookup.function;
    json_["table"] = lists_.unsigned_list(lookup.table, 8);
  }

 private:
  void write(const Window2d& window) const {
    const auto& [rows, columns] = window;
    json_["window"] = {rows.window, columns.window};
    json_["strides"] = {rows.stride, columns.stride};
    json_["dilations"] = {rows.dilation, columns.dilation};
    json_["paddings"] = {{rows.pad_before, rows.pad_after}, {columns.pad_before, columns.pad_after}};
  }
  void write(const Multiplier& multiplier) const {
    json_["multiplier"] = {{"mantissa", multiplier.mantissa}, {"shift", multiplier.shift}};
  }
  void write(const std::vector<Multiplier>& multipliers) const {
    std::vector<std::int32_t> mantissas;
    std::vector<std::uint8_t> shifts;
    for (const Multiplier& multiplier : multipliers) {
      mantissas.push_back(multiplier.mantissa);
      shifts.push_back(static_cast<std::uint8_t>(multiplier.shift));
    }
    Json json;
    json["mantissas"] = lists_.int32_list(mantissas);
    json["shifts"] = lists_.unsigned_list(shifts, 8);
    json_["multipliers"] = std::move(json);
  }

  Json& json_;
  ListWriter& lists_;
};

Shape read_shape(JsonFields& fields, const char* key) {
  return Shape(std::span<const std::int64_t>(fields.integers(key, 0, Shape::kMaxElements)));
}

std::array<std::int64_t, 2> read_pair(JsonFields& fields, const char* key) {
  const std::vector<std::int64_t> pair = fields.integers(key, 0, kLargestInteger);
  if (pair.size() != 2) fail(key, " must be two numbers, are ", pair.size());
  return {pair[0], pair[1]};
}

std::vector<std::array<std::int64_t, 2>> read_paddings(JsonFields& fields) {
  std::vector<std::array<std::int64_t, 2>> paddings;
  for (const Json& pair : fields.list("paddings")) {
    if (!pair.is_array() || pair.size() != 2) fail("paddings must be pairs of numbers, one is ", shown(pair));
    paddings.push_back({json_integer(pair[0], "in paddings each", 0, kLargestInteger),
                        json_integer(pair[1], "in paddings each", 0, kLargestInteger)});
  }
  return paddings;
}

/// Extents of images come from the shapes of the tensors.
Window2d read_window(JsonFields& fields, const Shape& input, const Shape& output) {
  const auto windows = read_pair(fields, "window"), strides = read_pair(fields, "strides"),
             dilations = read_pair(fields, "dilations");
  const auto paddings = read_paddings(fields);
  if (paddings.size() != 2) fail("paddings must be two pairs, are ", paddings.size());
  if (input.rank() != 3) fail("takes an image [h, w, c], not ", input);
  const auto axis = [&](int i) {
    return WindowAxis{.input = input[i],
                      .window = windows[i],
                      .stride = strides[i],
                      .dilation = dilations[i],
                      .output = output.rank() == 3 ? output[i] : 1,
                      .pad_before = paddings[i][0],
                      .pad_after = paddings[i][1]};
  };
  return {.rows = axis(0), .columns = axis(1)};
}

/// What is particular to an action, out of the JSON of its operation.
class ActionReader {
 public:
  ActionReader(JsonFields& fields, ListReader& lists, const Shape& input, const Shape& output)
      : fields_(fields), lists_(lists), input_(input), output_(output) {}

  Action read(const std::string& type) const {
    for (std::size_t kind = 0; kind < kLayerKindNames.size(); ++kind)
      if (type == kLayerKindNames[kind]) return layer(static_cast<LayerKind>(kind));
    if (type == "Add") return Add{shared_multipliers()};
    if (type == "Mul") return Mul{multiplier()};
    if (type == "Rescale") return Rescale{multiplier()};
    if (type == "Concat") {
      const auto axis = static_cast<int>(fields_.integer("axis", 0, Shape::kMaxRank));
      return Concat{.axis = axis, .multipliers = multipliers()};
    }
    if (type == "AveragePool") {
      const Window2d window = this->window();
      return AveragePool{.window = window, .multipliers = multipliers()};
    }
    if (type == "MaxPool") return MaxPool{window()};
    if (type == "Reshape") return Reshape{};
    if (type == "Pad") return Pad{read_paddings(fields_)};
    if (type == "Slice") {
      std::vector<std::int64_t> starts = fields_.integers("starts", 0, kLargestInteger);
      return Slice{.starts = std::move(starts), .steps = fields_.integers("steps", 0, kLargestInteger)};
    }
    if (type == "Lookup") {
      std::string function = fields_.text("function");
      return Lookup{.function = std::move(function), .table = unsigned_list(fields_, "table", 8)};
    }
    fail("the type ", shown(Json(type)), " is unknown");
  }

 private:
  Window2d window() const { return read_window(fields_, input_, output_); }

  Layer layer(LayerKind kind) const {
    Layer layer{.kind = kind};
    if (kind != LayerKind::kFullyConnected) layer.window = window();
    layer.filter = read_shape(fields_, "filter");
    layer.weight_bits = static_cast<int>(fields_.integer("weight_bits", 2, 8));
    layer.weights = unsigned_list(fields_, "weights", layer.weight_bits);
    layer.weight_scales =
        fields_.value("weight_scales", [this](const Json& list) { return lists_.float32_list(list); });
    const std::vector<std::uint8_t> zero_points = unsigned_list(fields_, "weight_zero_points", 8);
    layer.weight_zero_points.assign(zero_points.begin(), zero_points.end());
    layer.bias = int32_list(fields_, "bias");
    layer.multipliers = multipliers();
    return layer;
  }

  Multiplier multiplier() const {
    return fields_.object("multiplier", [](JsonFields& fields) {
      return Multiplier{.mantissa = fields.int32("mantissa"), .shift = fields.int32("shift")};
    });
  }
  SharedMultipliers shared_multipliers() const {
    return fields_.object("multipliers", [](JsonFields& fields) {
      const std::vector<std::int64_t> mantissas = fields.integers("mantissas", 0, SharedMultipliers::kLargestMantissa);
      return SharedMultipliers{.mantissas = {mantissas.begin(), mantissas.end()}, .shift = fields.int32("shift")};
    });
  }
  std::vector<Multiplier> multipliers() const {
    return fields_.object("multipliers", [this](JsonFields& fields) {
      const std::vector<std::int32_t> mantissas = int32_list(fields, "mantissas");
      const std::vector<std::uint8_t> shifts = unsigned_list(fields, "shifts", 8);
      if (mantissas.size() != shifts.size()) fail(mantissas.size(), " mantissas and ", shifts.size(), " shifts");
      std::vector<Multiplier> multipliers;
      for (std::size_t i = 0; i < shifts.size(); ++i)
        multipliers.push_back({.mantissa = mantissas[i], .shift = shifts[i]});
      return multipliers;
    });
  }

  std::vector<std::uint8_t> unsigned_list(JsonFields& fields, const char* key, int bits) const {
    return fields.value(key, [&](const Json& list) { return lists_.unsigned_list(list, bits); });
  }
  std::vector<std::int32_t> int32_list(JsonFields& fields, const char* key) const {
    return fields.value(key, [&](const Json& list) { return lists_.int32_list(list); });
  }

  JsonFields& fields_;
  ListReader& lists_;
  const Shape& input_;
  const Shape& output_;
};

constexpr const char* kClassNames = "class_names";

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
    // A key of files that know their classes.
    if (json.contains(kClassNames)) model_.class_names = fields.texts(kClassNames);
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
    const ActionReader action(fields, lists_, model_.input_of(operation).shape, model_.output_of(operation).shape);
    operation.action = action.read(type);
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
    std::visit(ActionWriter(entry, lists), operation.action);
    json["operations"].push_back(std::move(entry));
  }
  return json;
}

Model model_from_json(const Json& json, ListReader& lists) { return ModelReader(lists).read(json); }

}  // namespace miniqat::integer
