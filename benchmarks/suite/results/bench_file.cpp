#include "benchmarks/suite/results/bench_file.h"

#include <algorithm>
#include <cmath>

#include "benchmarks/suite/measure/this_machine.h"
#include "core/error.h"
#include "core/files.h"
#include "core/text/counted.h"
#include "core/text/json.h"
#include "core/text/json_text.h"
#include "core/text/quote.h"

namespace miniqat::benchmarks {
namespace {

using Json = nlohmann::ordered_json;

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
  std::vector<double> seconds(const char* key) const {
    const Json& list = at(key);
    const auto is_time = [](const Json& value) {
      return value.is_number() && std::isfinite(value.get<double>()) && value.get<double>() > 0;
    };
    if (!list.is_array() || list.empty() || !std::ranges::all_of(list, is_time)) refuse(key, "a list of seconds");
    return list.get<std::vector<double>>();
  }
  /// The objects of a list.
  template <class Read>
  void each(const char* key, const Read& read) const {
    if (!at(key).is_array()) refuse(key, "a list");
    std::size_t i = 0;
    for (const Json& element : at(key)) read(BenchObject(element, concat(place_, ": ", key, "[", i++, "]")));
  }
  /// Those of the keys that it has.
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

void add_record(BenchFile& file, const BenchObject& row, BenchRecord record) {
  const auto is_same = [&](const BenchRecord& other) { return other.what == record.what && other.by == record.by; };
  if (std::ranges::any_of(file.records, is_same))
    fail(row.place(), ": ", record.what, " by ", record.by, " stands there twice");
  file.records.push_back(std::move(record));
}

Json parsed(const std::string& path) {
  const std::string bytes = read_file(path);
  try {
    return parse_json(bytes);
  } catch (const Error& error) {
    fail(path, ": ", error.what());
  }
}

}  // namespace

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
  if (!top.has("kernels") && !top.has("steps")) {
    if (top.has("loaded")) fail(path, ": has figures of --loaded only, which --compare does not compare");
    top.at("kernels");
  }
  if (top.has("kernels"))
    top.each("kernels", [&](const BenchObject& row) { add_record(file, row, kernel_record(row)); });
  if (top.has("steps")) top.each("steps", [&](const BenchObject& row) { add_record(file, row, step_record(row)); });
  return file;
}

}  // namespace miniqat::benchmarks
