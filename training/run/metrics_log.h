#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/files/safetensors.h"
#include "core/graph/graph.h"

namespace miniqat::training {

/// A run's metrics.jsonl: one JSON object a line, each with the "step" that it is about, in the order of the steps. It
/// may have any length: it is read from its end, no farther than needed.
class MetricsLog {
 public:
  explicit MetricsLog(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  bool exists() const;
  /// Appends one object as a line, whole or not at all. Throws Error naming path and reason.
  void append(const nlohmann::ordered_json& line) const;
  /// Puts the lines so far on the disk: a checkpoint must not be there before the metrics of its steps.
  void sync() const;
  /// Drops the lines at the end that are beyond `step`, which a run logged after its last checkpoint, and what is not a
  /// line there.
  void forget_after(std::int64_t step) const;
  /// The last line about `step` that has a number under `key`; null when there is none. Text that is not a line is
  /// ignored.
  nlohmann::ordered_json find(std::int64_t step, const std::string& key) const;
  /// The last line that is one; null when there is none.
  nlohmann::ordered_json last() const;
  /// Why the run could not go on after `step`: "failure" of the last such line; "" when there is none.
  std::string failure_after(std::int64_t step) const;

 private:
  std::filesystem::path path_;
};

/// {"conv1/weights_quant": [-0.31, 0.42]}: the range of each quantizer of a graph with these variables, of one with a
/// range for each channel the lowest and the highest end. Each number is the shortest that rounds to the float32.
nlohmann::ordered_json ranges_json(const Graph& graph, const NamedTensors& variables);

/// Whether the line-th line about a step of training, counted from 1, has the ranges: the first twenty, then every
/// second up to the fortieth, every fourth up to the eightieth and so on. It does not depend on the length of the run.
bool has_ranges(std::int64_t line);

}  // namespace miniqat::training
