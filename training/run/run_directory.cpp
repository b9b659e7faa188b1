#include "training/run/run_directory.h"

#include "core/files/files.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/json_text.h"
#include "core/text/quote.h"
#include "training/model_source.h"
#include "training/run/json_shape.h"

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

}  // namespace

RunDirectory RunDirectory::fresh(const fs::path& path, const std::string& advice, Existing existing) {
  RunDirectory run(path);
  run.lock(RunLock::Directory::kMake);
  std::error_code failure;
  if (existing == Existing::kOverwrite) {
    run.require_own_config();
    // clear() removes links, not their targets. A trace stays where there is no run.
    if (!fs::exists(run.config(), failure)) require_no_link(run.trace());
    return run;
  }
  run.require_no_links();
  if (!fs::exists(run.config(), failure) && run.lock_->was_left_behind()) return run;
  for (const fs::path& file : run.files())
    if (fs::exists(file, failure))
      fs::exists(run.config(), failure)
          ? fail(path.string(), " holds a run already (", file.filename().string(), "): ", advice)
          : fail(path.string(), " holds no run, but a file that a run would overwrite: ", file.filename().string(),
                 "; move it, or give another --out or --overwrite");
  return run;
}

/// Not every config.json is a run's.
void RunDirectory::require_own_config() const {
  std::error_code failure;
  if (!fs::exists(config(), failure)) return;
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

bool RunDirectory::is_calibrated() const {
  std::error_code failure;
  return fs::exists(summary(), failure) && read_json(summary()).contains("calibration");
}

void RunDirectory::clear() const {
  std::error_code failure;
  // The trace and given arrays may be somebody's where there is no run.
  if (fs::exists(config(), failure))
    for (const fs::path& file : {trace(), given_arrays()}) fs::remove(file, failure);
  for (const fs::path& file : files()) fs::remove(file, failure);
}

RunDirectory RunDirectory::open(const fs::path& path) {
  RunDirectory run(path);
  std::error_code failure;
  if (fs::is_regular_file(path, failure))
    fail(path.string(), " is a file, not the directory of a run", way_for_file(path));
  if (fs::exists(run.config(), failure)) return run;
  if (fs::exists(run.quantization(), failure))
    fail(path.string(), " holds a run of quantize that is not complete; miniqat quantize --resume --out ",
         shell_path(path), " goes on with it");
  fail(path.string(), " holds no run: there is no ", run.config().string(), way_for_model(path.string()));
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

void write_json(const fs::path& path, const Json& json) {
  write_file_atomically(path, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

void copy_if_there(const fs::path& from, const fs::path& to) {
  std::error_code failure;
  if (fs::exists(from, failure)) write_file_atomically(to, read_large_file(from));
}

}  // namespace miniqat::training
