#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace miniqat::cli {

/// A run on disk: config.json, metrics.jsonl, checkpoint.safetensors, train_graph.json, eval_graph.json, summary.json,
/// bits.json when layers have bits of their own, trace.json after a profiled run, and init_checkpoint.json where the
/// run began with another one's variables.
class RunDirectory {
 public:
  /// For a new run; nothing is made yet. Throws Error, which ends in the advice, when `path` holds a run, or any file
  /// of one, already; and Error when make() would fail or the run could write nothing there.
  static RunDirectory fresh(const std::filesystem::path& path, const std::string& advice);
  /// Throws Error when `path` holds no run.
  static RunDirectory open(const std::filesystem::path& path);

  /// Makes the directory if need be. Throws Error when that fails.
  void make() const;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path config() const { return path_ / "config.json"; }
  std::filesystem::path bits() const { return path_ / "bits.json"; }
  std::filesystem::path metrics() const { return path_ / "metrics.jsonl"; }
  std::filesystem::path checkpoint() const { return path_ / "checkpoint.safetensors"; }
  std::filesystem::path train_graph() const { return path_ / "train_graph.json"; }
  std::filesystem::path eval_graph() const { return path_ / "eval_graph.json"; }
  std::filesystem::path summary() const { return path_ / "summary.json"; }
  std::filesystem::path trace() const { return path_ / "trace.json"; }
  std::filesystem::path init_checkpoint() const { return path_ / "init_checkpoint.json"; }

  /// Appends one object as a line to metrics.jsonl.
  void log(const nlohmann::ordered_json& metrics) const;
  /// Drops the lines of metrics.jsonl whose "step" is beyond `step`: what a run logged after its last checkpoint.
  void forget_metrics_after(std::int64_t step) const;

 private:
  explicit RunDirectory(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

/// `path` itself or, where that is a run directory, its checkpoint. Throws Error for other directories.
std::filesystem::path checkpoint_file(const std::filesystem::path& path);

/// Reads a JSON file; errors name the file and the place.
nlohmann::ordered_json read_json(const std::filesystem::path& path);
/// Writes it indented, atomically. Bytes of texts (paths, that is) that are no UTF-8 become U+FFFD.
void write_json(const std::filesystem::path& path, const nlohmann::ordered_json& json);

}  // namespace miniqat::cli
