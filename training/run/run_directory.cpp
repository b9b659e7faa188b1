#include "training/run/run_directory.h"

#include <algorithm>
#include <map>

#include "core/files/files.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/json_text.h"
#include "core/text/quote.h"
#include "training/model_source.h"
#include "training/settings/usage_error.h"

namespace miniqat::training {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

/// Where a file that stands in a run's place belongs, by its ending.
std::string way_for_file(const fs::path& file) {
  const std::string ending = file.extension().string();
  if (ending == ".miniqat") return "; `miniqat eval` takes such a model as --model";
  if (ending == ".onnx")
    return "; an ONNX model goes with --model (train, quantize, calibrate, sensitivity), or alone (import, inspect)";
  if (ending == ".json") return "; a network's graph goes with --model (train), or alone (inspect)";
  if (ending == ".safetensors")
    return "; give the run's directory (eval, verify and export take another checkpoint as --checkpoint)";
  return "";
}

/// Where a model's name stands in a run's place.
std::string way_for_model(const std::string& name) {
  if (!is_model_name(name)) return "";
  return concat("; ", name, " is a model, of which `miniqat train --model ", name, " --out runs/", name,
                "` makes a run");
}

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

RunDirectory RunDirectory::fresh(const fs::path& path, const std::string& advice, Existing existing) {
  RunDirectory run(require_name(path));
  run.lock(RunLock::Directory::kMake);
  if (existing == Existing::kOverwrite) {
    run.require_own_config();
    // clear() removes links, not their targets. A trace stays where there is no run.
    if (!is_there(run.config())) require_no_link(run.trace());
    return run;
  }
  run.require_no_links();
  if (!is_there(run.config()) && run.lock_->was_left_behind()) return run;
  for (const fs::path& file : run.files())
    if (is_there(file))
      is_there(run.config())
          ? fail(path.string(), " holds a run already (", file.filename().string(), "): ", advice)
          : fail(path.string(), " holds no run, but a file that a run would overwrite: ", file.filename().string(),
                 "; move it, or give another --out or --overwrite");
  if (const std::string other = run.something_else(); !other.empty())
    throw UsageError(concat(path.string(), " holds no run, but something else: ", other,
                            "; give a new or an empty folder as --out, or --overwrite to put a run beside it"));
  return run;
}

/// The name of a file or folder that is no lock, nor what a process that died has left of a run's file.
std::string RunDirectory::something_else() const {
  std::error_code failure;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_, failure)) {
    const std::string name = entry.path().filename().string();
    const auto is_left_of = [&](const fs::path& file) { return is_temporary_of(file, entry.path()); };
    if (name != ".lock" && !std::ranges::any_of(files(), is_left_of)) return name;
  }
  return {};
}

/// Not every config.json is a run's.
void RunDirectory::require_own_config() const {
  if (!is_there(config())) return;
  Json json;
  try {
    json = read_json(config());
  } catch (const Error&) {
    // A run's that something else has damaged, or none: nobody knows.
  }
  if (!json.is_object() || !json.contains("model") || !json.contains("dataset"))
    fail(config().string(), " does not belong to a run: --overwrite would delete a file that miniqat did not write");
}

RunDirectory RunDirectory::resume(const fs::path& path) {
  RunDirectory run = open(path);
  run.lock(RunLock::Directory::kMustExist);
  // The run may have been overwritten until now.
  open(path);
  run.require_no_links();
  return run;
}

void RunDirectory::require_no_links() const {
  for (const fs::path& file : files()) require_no_link(file);
  require_no_link(trace());
}

/// Under the lock nobody else writes here, so other temporary files are those of processes that died. On file systems
/// without locks they may belong to a process that is about to rename them.
void RunDirectory::lock(RunLock::Directory wanted) {
  lock_ = std::make_shared<const RunLock>(path_, wanted);
  if (!lock_->is_exclusive()) return;
  for (const fs::path& file : files()) remove_dead_temporaries(file);
}

std::vector<fs::path> RunDirectory::files() const {
  std::vector<fs::path> files;
  for (const char* name :
       {"config.json", "checkpoint.safetensors", "summary.json", "metrics.jsonl", "train_graph.json", "eval_graph.json",
        "model_graph.json", "dataset.json", "skipped_files.json", "bits.json", "class_weights.json",
        "init_checkpoint.json", "quantize.json", "verify.json", "machine.json", "commands.json"})
    files.push_back(path_ / name);
  return files;
}

bool RunDirectory::is_calibrated() const { return json_if_there(summary()).contains("calibration"); }

void RunDirectory::clear() const {
  std::error_code failure;
  // These may be somebody's where there is no run.
  if (is_there(config()))
    for (const fs::path& file : {trace(), given_arrays()}) fs::remove(file, failure);
  for (const fs::path& file : files()) fs::remove(file, failure);
}

RunDirectory RunDirectory::open(const fs::path& path) {
  RunDirectory run(path);
  std::error_code failure;
  if (fs::is_regular_file(path, failure))
    fail(path.string(), " is a file, not the directory of a run", way_for_file(path));
  if (is_there(run.config())) return run;
  if (is_there(run.quantization()))
    fail(path.string(), " holds a run of quantize that is not complete; miniqat quantize --resume --out ",
         shell_path(path), " goes on with it");
  fail(path.string(), " holds no run: there is no ", run.config().string(), way_for_model(path.string()));
}

std::optional<RunDirectory> run_of_variables(const fs::path& path) {
  std::error_code failure;
  const bool is_folder = fs::is_directory(path, failure);
  const fs::path folder = is_folder ? path : path.parent_path();
  if (path.empty() || !is_there(folder / "config.json")) return {};
  const RunDirectory run = RunDirectory::open(folder.empty() ? "." : folder);
  if (!is_folder && path.filename() != run.checkpoint().filename()) return {};
  return run;
}

const fs::path& require_name(const fs::path& out) {
  if (out.empty()) throw UsageError("--out must not be empty");
  return out;
}

bool is_or_lies_in(const fs::path& path, const fs::path& directory) {
  std::error_code failure;
  const fs::path place = fs::canonical(path, failure);
  if (failure) return false;
  return fs::equivalent(fs::is_directory(place, failure) ? place : place.parent_path(), directory, failure);
}

Json read_json(const fs::path& path) {
  Json json;
  try {
    json = parse_json(read_file(path));
  } catch (const Error& error) {
    const std::string text = error.what();
    const bool named = text.find(path.string()) != std::string::npos;
    fail(named ? "" : path.string() + ": ", text);
  }
  require_shape(json, shape_of_file(path), path.string());
  return json;
}

Json json_if_there(const fs::path& path) { return is_there(path) ? read_json(path) : Json(); }

std::string text_at(const Json& json, const char* key) {
  const Json found = json.is_object() ? json.value(key, Json()) : Json();
  return found.is_string() ? found.get<std::string>() : "";
}

std::optional<double> number_at(const Json& json, const char* key) {
  const Json found = json.is_object() ? json.value(key, Json()) : Json();
  return found.is_number() ? std::optional(found.get<double>()) : std::nullopt;
}

void write_json(const fs::path& path, const Json& json) {
  write_file_atomically(path, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

void copy_if_there(const fs::path& from, const fs::path& to) {
  if (is_there(from)) write_file_atomically(to, read_large_file(from));
}

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
  static const Json kAnything = "anything", kNames = {{"restored", Json::array({"a text"})}};
  static const std::map<std::string, Json> kShapes = {
      {"summary.json",
       {{"complete?", "true or false"}, {"steps?", "a whole number"}, {"task?", "a text"}, {"machine?", "an object"}}},
      {"quantize.json",
       {{"complete?", "true or false"},
        {"training?", {{"task?", "a text"}}},
        {"rows?", Json::array({{{"name", "a text"}}})}}},
      {"init_checkpoint.json", kNames},
      {"machine.json", "an object"},
      {"commands.json", Json::array({{{"command", "a text or null"}}})},
      {"dataset.json", "an object"},
      {"skipped_files.json", Json::array({{{"why", "a text"}}})},
      {"verify.json", shape_of_verification()}};
  const auto found = kShapes.find(file.filename().string());
  return found == kShapes.end() ? kAnything : found->second;
}

}  // namespace miniqat::training
