#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "training/run/metrics_log.h"
#include "training/run/run_lock.h"

namespace miniqat::training {

/// A run on disk: config.json, metrics.jsonl, checkpoint.safetensors, train_graph.json, eval_graph.json, summary.json.
/// Some runs have more: bits.json for layers with bits of their own, class_weights.json for what classes weigh in the
/// loss, trace.json of a profile, init_checkpoint.json
/// after a start from another run's variables, model_graph.json for the network of a model file, dataset.json for what
/// `train` knows of its data at the beginning, skipped_files.json for broken files of these, commands.json of the
/// commands that made it, quantize.json of the command of that name, verify.json of the last `verify`. docs/runs.md
/// describes the files and their order.
class RunDirectory {
 public:
  static constexpr const char* kGivenArrays = "given_arrays.npz";

  enum class Existing { kRefuse, kOverwrite };
  static Existing existing_if(bool overwrite) { return overwrite ? Existing::kOverwrite : Existing::kRefuse; }

  /// For a new run: makes the directory if need be and locks it for as long as a copy of the result lives; a directory
  /// that was made goes again if nothing has come into it by then. Throws Error, which ends in the advice, when `path`
  /// holds a run, or any file of one, already, and may not be overwritten; UsageError when it then holds anything else,
  /// and for an empty path, which would be the current directory; and what RunLock throws. The files of a run that died
  /// before it had its config.json are not a run. A link in the place of a file is an error, too, unless it is to be
  /// overwritten: then clear() removes the link, not its target.
  static RunDirectory fresh(const std::filesystem::path& path, const std::string& advice,
                            Existing existing = Existing::kRefuse);
  /// For a run that goes on: open() with the lock. Throws Error where a file is a link, which the run would write
  /// through.
  static RunDirectory resume(const std::filesystem::path& path);
  /// To read from. Throws Error when `path` holds no run.
  static RunDirectory open(const std::filesystem::path& path);

  /// Removes every file that a run makes, config.json before those without which it is nothing. No error: what cannot
  /// be removed will not be replaced, either.
  void clear() const;

  /// Clears the directory and calls `write`; if that throws, nothing of it stays.
  template <class Write>
  void write_anew(const Write& write) const {
    clear();
    try {
      write();
    } catch (...) {
      clear();
      throw;
    }
  }

  /// Throws Error where a file of the run is a symbolic link, or a pipe: the run would write through it.
  void require_no_links() const;

  /// Whether `calibrate` has made it, which takes no training step.
  bool is_calibrated() const;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path config() const { return path_ / "config.json"; }
  std::filesystem::path class_weights() const { return path_ / "class_weights.json"; }
  std::filesystem::path bits() const { return path_ / "bits.json"; }
  std::filesystem::path checkpoint() const { return path_ / "checkpoint.safetensors"; }
  std::filesystem::path model_graph() const { return path_ / "model_graph.json"; }
  std::filesystem::path train_graph() const { return path_ / "train_graph.json"; }
  std::filesystem::path eval_graph() const { return path_ / "eval_graph.json"; }
  std::filesystem::path dataset() const { return path_ / "dataset.json"; }
  /// The arrays that a Python program gave as the run's data; a run of data with a place of their own has none.
  std::filesystem::path given_arrays() const { return path_ / kGivenArrays; }
  std::filesystem::path skipped_files() const { return path_ / "skipped_files.json"; }
  std::filesystem::path machine() const { return path_ / "machine.json"; }
  std::filesystem::path commands() const { return path_ / "commands.json"; }
  std::filesystem::path summary() const { return path_ / "summary.json"; }
  std::filesystem::path trace() const { return path_ / "trace.json"; }
  std::filesystem::path init_checkpoint() const { return path_ / "init_checkpoint.json"; }
  std::filesystem::path quantization() const { return path_ / "quantize.json"; }
  std::filesystem::path verification() const { return path_ / "verify.json"; }
  MetricsLog metrics() const { return MetricsLog(path_ / "metrics.jsonl"); }
  /// The files by which a run is known, the settings first.
  std::vector<std::filesystem::path> files() const;

 private:
  explicit RunDirectory(std::filesystem::path path) : path_(std::move(path)) {}
  void lock(RunLock::Directory wanted);
  std::string something_else() const;
  void require_own_config() const;

  std::filesystem::path path_;
  std::shared_ptr<const RunLock> lock_;
};

/// The run that variables are of: the directory that `path` is, or that of the checkpoint.safetensors that it is. None
/// where there is no config.json.
std::optional<RunDirectory> run_of_variables(const std::filesystem::path& path);

/// Returns the path of what a command is to make. Throws UsageError for an empty one: it would be the current
/// directory.
const std::filesystem::path& require_name(const std::filesystem::path& out);

/// Whether `path` leads to the directory or to a file right in it; false for what is not there.
bool is_or_lies_in(const std::filesystem::path& path, const std::filesystem::path& directory);

/// Reads a JSON file; errors name the file and the place.
nlohmann::ordered_json read_json(const std::filesystem::path& path);
/// Reads a JSON file, or gives null where there is none.
nlohmann::ordered_json json_if_there(const std::filesystem::path& path);
/// The value of a key, "" or none where `json` is no object or has another kind of value there.
std::string text_at(const nlohmann::ordered_json& json, const char* key);
std::optional<double> number_at(const nlohmann::ordered_json& json, const char* key);
/// Writes it indented, atomically. Bytes of texts (paths, that is) that are no UTF-8 become U+FFFD.
void write_json(const std::filesystem::path& path, const nlohmann::ordered_json& json);

/// Copies one of a run's files, atomically; does nothing where there is none.
void copy_if_there(const std::filesystem::path& from, const std::filesystem::path& to);

// The types that readers of a run's files rely on, so that a damaged file is refused when it is read, with its name and
// the place, and not by whoever looks at a value later.
//
// A shape is JSON itself. {"rows": [{"name": "a text", "seconds?": "a number"}]} is an object with a list of objects;
// keys that end in ? may be missing, others may not, and keys that it does not name may be anything. The types are "a
// text", "a number", "a number or null", "a whole number", "true or false", "an object", "a list" and "anything".

/// Throws Error for the first part that is otherwise: `q/quantize.json: rows[2].name must be a text, is 5`.
void require_shape(const nlohmann::ordered_json& json, const nlohmann::ordered_json& shape, const std::string& source);

/// The shape of a run's file, by its name: "summary.json". "anything" for files whose readers check all values.
const nlohmann::ordered_json& shape_of_file(const std::filesystem::path& file);

/// The shape of the file that `sensitivity` writes, whatever it is called.
const nlohmann::ordered_json& shape_of_sensitivity();

}  // namespace miniqat::training
