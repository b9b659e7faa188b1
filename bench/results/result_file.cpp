#include "bench/results/result_file.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "bench/measure/this_machine.h"
#include "core/files/files.h"
#include "core/text/error.h"
#include "core/text/json_text.h"

namespace miniqat::bench {
namespace {

using Json = nlohmann::ordered_json;

Json quartiles_json(const Spread& spread) { return {spread.low, spread.high}; }

/// Columns and their texts.
using CsvRow = std::vector<std::pair<std::string, std::string>>;

std::string cell_of(const Json& value) {
  if (!value.is_string()) return value.is_null() ? "" : value.dump();
  const std::string text = value.get<std::string>();
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char letter : text) quoted += letter == '"' ? "\"\"" : std::string(1, letter);
  return quoted + "\"";
}

void add_cells(const std::string& prefix, const Json& object, CsvRow& row) {
  for (const auto& [key, value] : object.items()) {
    const std::string name = prefix + key;
    if (value.is_object()) {
      add_cells(name + "_", value, row);
    } else if (!value.is_array()) {
      row.emplace_back(name, cell_of(value));
    } else if (value.size() == 2 && (name.ends_with("_quartiles") || name.ends_with("_interval"))) {
      row.emplace_back(name + "_low", cell_of(value[0]));
      row.emplace_back(name + "_high", cell_of(value[1]));
    }
  }
}

/// Adds the columns that the row has and the others have not, each behind the one that is before it in the row.
void add_columns(const CsvRow& row, std::vector<std::string>& columns) {
  auto place = columns.begin();
  for (const auto& [name, text] : row) {
    const auto found = std::ranges::find(columns, name);
    place = (found == columns.end() ? columns.insert(place, name) : found) + 1;
  }
}

std::string line_of(const CsvRow& row, const std::vector<std::string>& columns) {
  std::string line;
  for (const std::string& column : columns) {
    const auto cell = std::ranges::find(row, column, &CsvRow::value_type::first);
    line += (&column == &columns.front() ? "" : ",") + (cell == row.end() ? "" : cell->second);
  }
  return line + "\n";
}

/// What the figures are of.
CsvRow machine_cells(const Json& json) {
  CsvRow cells;
  for (const char* key : {"cpu", "instruction_set"})
    if (json.contains("machine") && json["machine"].contains(key))
      cells.emplace_back(key, cell_of(json["machine"][key]));
  for (const char* key : {"version", "commit", "date"})
    if (json.contains(key)) cells.emplace_back(key, cell_of(json[key]));
  return cells;
}

/// One object of the file, with its place for errors.
class BenchObject {
 public:
  BenchObject(const Json& json, std::string place) : json_(json), place_(std::move(place)) {
    if (!json_.is_object()) fail(place_, ": must be an object, is ", shown(json_));
  }

  bool has(const char* key) const { return json_.contains(key); }
  const Json& at(const char* key) const {
    if (!has(key)) fail(place_, ": has no \"", key, "\"; was it written by `miniqat bench --out`, of this version?");
    return json_[key];
  }
  std::string text(const char* key) const {
    if (!at(key).is_string()) refuse(key, "a text");
    return at(key).get<std::string>();
  }
  std::int64_t whole(const char* key) const {
    if (!at(key).is_number_integer()) refuse(key, "a whole number");
    return at(key).get<std::int64_t>();
  }
  bool yes(const char* key) const {
    if (!at(key).is_boolean()) refuse(key, "true or false");
    return at(key).get<bool>();
  }
  std::vector<double> positive_numbers(const char* key, const char* wanted) const {
    const Json& list = at(key);
    const auto is_positive = [](const Json& value) {
      return value.is_number() && std::isfinite(value.get<double>()) && value.get<double>() > 0;
    };
    if (!list.is_array() || list.empty() || !std::ranges::all_of(list, is_positive)) refuse(key, wanted);
    return list.get<std::vector<double>>();
  }
  std::vector<double> seconds(const char* key) const { return positive_numbers(key, "a list of seconds"); }
  /// The objects of a list.
  template <class Read>
  void each(const char* key, const Read& read) const {
    if (!at(key).is_array()) refuse(key, "a list");
    std::size_t i = 0;
    for (const Json& element : at(key)) read(BenchObject(element, concat(place_, ": ", key, "[", i++, "]")));
  }
  /// The keys that it has, of those asked for, with their values.
  Json some(std::initializer_list<const char*> keys) const {
    Json result = Json::object();
    for (const char* key : keys)
      if (has(key)) result[key] = json_[key];
    return result;
  }
  const Json& all() const { return json_; }
  BenchObject object(const char* key) const { return {at(key), concat(place_, ": ", key)}; }
  const std::string& place() const { return place_; }

 private:
  [[noreturn]] void refuse(const char* key, const char* wanted) const {
    fail(place_, ": \"", key, "\" must be ", wanted, ", is ", shown(at(key)));
  }

  const Json& json_;
  std::string place_;
};

BenchRecord kernel_record(const BenchObject& row) {
  const std::string kernel = row.text("kernel"), layout = row.text("layout");
  std::string what = kernel;
  if (!layout.empty()) what += ", " + layout;
  if (row.has("bits")) what += concat(", ", row.whole("bits"), " bits");
  if (layout == "per channel") what += concat(", ", row.whole("channels"), " channels");
  const std::string size = concat(row.whole("elements"), " elements, ", counted(row.whole("threads"), "thread"));
  what += ", " + size;
  return {what,
          row.text("by"),
          row.seconds("rounds"),
          row.yes("quiet"),
          size,
          kernel == "memcpy",
          row.some({"kernel", "layout", "bits", "channels", "elements", "threads"})};
}

BenchRecord step_record(const BenchObject& row) {
  return {concat(row.text("model"), ", ", row.text("what"), ", batch ", row.whole("batch"), ", ",
                 counted(row.whole("threads"), "thread")),
          "miniqat",
          row.seconds("rounds"),
          row.yes("quiet"),
          "",
          false,
          row.some({"model", "what", "batch", "threads"})};
}

/// The speeds of `--loaded` as seconds a step.
BenchRecord loaded_record(const BenchObject& row, const char* speeds, std::int64_t threads) {
  const std::int64_t batch = row.whole("batch");
  std::vector<double> rounds = row.positive_numbers(speeds, "a list of images/s");
  for (double& round : rounds) round = static_cast<double>(batch) / round;
  Json keys = row.some({"model", "neighbours", "batch"});
  keys["threads"] = threads;
  return {concat(row.text("model"), ", W8A8, neighbours: ", row.text("neighbours"), ", batch ", batch, ", ",
                 counted(threads, "thread")),
          "miniqat",
          rounds,
          row.yes("quiet"),
          "",
          false,
          keys};
}

void add_record(BenchFile& file, const BenchObject& row, BenchRecord record) {
  const auto is_same = [&](const BenchRecord& other) { return other.what == record.what && other.by == record.by; };
  if (std::ranges::any_of(file.records, is_same))
    fail(row.place(), ": ", record.what, " by ", record.by, " stands there twice");
  file.records.push_back(std::move(record));
}

Json parsed(const std::string& path) {
  const std::string bytes = read_file(path);
  if (bytes.starts_with("row,")) fail(path, ": --compare takes the JSON of bench --out or --json, not CSV");
  try {
    return parse_json(bytes);
  } catch (const Error& error) {
    fail(path, ": ", error.what());
  }
}

}  // namespace

nlohmann::ordered_json kernel_json(const KernelTime& row) {
  const OperationTraits& traits = traits_of(row.what.operation);
  const Spread seconds = spread_of(row.rounds);
  Json json = {{"kernel", traits.name},
               {"by", row.by},
               {"layout", row.what.layout()},
               {"bits", row.what.bits},
               {"channels", row.what.channels},
               {"elements", row.what.elements},
               {"threads", row.threads},
               {"threads_used", row.threads_used},
               {"seconds", seconds.median},
               {"seconds_quartiles", quartiles_json(seconds)},
               {"rounds", row.rounds},
               {"quiet", row.quiet},
               {"gigabytes_per_second", row.bytes() / seconds.median / 1e9},
               {"elements_per_nanosecond", row.elements_per_nanosecond()},
               {"nanoseconds_an_element", row.nanoseconds_an_element()},
               {"of_memcpy", row.of_memcpy.median},
               {"of_memcpy_quartiles", quartiles_json(row.of_memcpy)},
               {"bytes_an_element", traits.cost.bytes()},
               {"operations_an_element", traits.cost.operations},
               {"of_roof", row.of_roof}};
  if (!traits.has_grid) json.erase("bits");
  if (!row.plugin.empty()) json["plugin"] = row.plugin;
  if (row.of_ours) {
    json["of_miniqat"] = row.of_ours->median;
    json["of_miniqat_quartiles"] = quartiles_json(*row.of_ours);
    if (row.of_ours_interval) json["of_miniqat_interval"] = {row.of_ours_interval->low, row.of_ours_interval->high};
  }
  if (row.counts) {
    json["instructions_an_element"] = row.counts->instructions;
    json["cache_misses_an_element"] = row.counts->cache_misses;
  }
  return json;
}

nlohmann::ordered_json step_json(const StepTime& row, const Disturbance& disturbance) {
  const Spread seconds = spread_of(row.rounds);
  return {{"model", row.model},
          {"what", row.what},
          {"batch", row.batch},
          {"threads", row.threads},
          {"seconds", seconds.median},
          {"seconds_quartiles", quartiles_json(seconds)},
          {"rounds", row.rounds},
          {"quiet", is_steady(row.rounds) && disturbance.reasons().empty()},
          {"images_per_second", row.images_per_second()},
          {"over_float", row.over_float.median},
          {"over_float_quartiles", quartiles_json(row.over_float)},
          {"arena_bytes", row.arena}};
}

nlohmann::ordered_json loaded_json(const LoadedSpeed& row) {
  const Spread all = spread_of(row.all_threads), one = spread_of(row.one_thread);
  Json json = {{"model", row.model},
               {"neighbours", row.neighbours},
               {"batch", row.batch},
               {"threads", row.threads},
               {"images_per_second", all.median},
               {"images_per_second_quartiles", quartiles_json(all)},
               {"images_per_second_rounds", row.all_threads},
               {"one_thread", one.median},
               {"one_thread_quartiles", quartiles_json(one)},
               {"one_thread_rounds", row.one_thread},
               {"quiet", row.disturbance.reasons().empty()}};
  if (row.of_bar.empty()) return json;
  const Spread of_bar = spread_of(row.of_bar);
  json["of_bar"] = of_bar.median;
  json["of_bar_quartiles"] = quartiles_json(of_bar);
  return json;
}

std::string bench_csv(const nlohmann::ordered_json& json) {
  const std::vector<std::pair<const char*, const char*>> lists = {
      {"kernels", "kernel"}, {"steps", "step"}, {"loaded", "loaded"}, {"cases", "compared"}};
  const CsvRow machine = machine_cells(json);
  std::vector<CsvRow> rows;
  std::vector<std::string> columns;
  for (const auto& [list, kind] : lists) {
    if (!json.contains(list)) continue;
    for (const Json& object : json[list]) {
      CsvRow row = {{"row", kind}};
      add_cells("", object, row);
      add_columns(row, columns);
      row.insert(row.end(), machine.begin(), machine.end());
      rows.push_back(std::move(row));
    }
  }
  if (rows.empty()) return "";
  for (const auto& [name, text] : machine) columns.push_back(name);
  std::string csv;
  for (const std::string& column : columns) csv += (csv.empty() ? "" : ",") + column;
  csv += "\n";
  for (const CsvRow& row : rows) csv += line_of(row, columns);
  return csv;
}

BenchFile read_bench_file(const std::string& path) {
  const Json json = parsed(path);
  const BenchObject top(json, path);
  const BenchObject machine = top.object("machine");
  BenchFile file;
  file.cpu = machine.text("cpu");
  const std::string commit = top.has("commit") ? top.text("commit") : "";
  file.about =
      concat(version_text(top.text("version"), commit), ", ", top.text("date"), ", ", machine.text("cpu"), ", ",
             machine.text("instruction_set"), ", ", top.text("compiler"), top.has("unfinished") ? ", unfinished" : "");
  file.flags = top.has("flags") ? top.text("flags") : "";
  file.machine = machine.all();
  if (!top.has("kernels") && !top.has("steps") && !top.has("loaded")) top.at("kernels");
  if (top.has("kernels"))
    top.each("kernels", [&](const BenchObject& row) { add_record(file, row, kernel_record(row)); });
  if (top.has("steps")) top.each("steps", [&](const BenchObject& row) { add_record(file, row, step_record(row)); });
  if (top.has("loaded"))
    top.each("loaded", [&](const BenchObject& row) {
      add_record(file, row, loaded_record(row, "images_per_second_rounds", row.whole("threads")));
      add_record(file, row, loaded_record(row, "one_thread_rounds", 1));
    });
  return file;
}

}  // namespace miniqat::bench
