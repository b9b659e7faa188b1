#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/text/json.h"
#include "training/task/evaluation.h"

namespace miniqat::training {

/// What a run directory tells of itself.
struct ListedRun {
  /// Relative to the folder that was searched; of the folder itself its own name.
  std::string name;
  /// The folder that was searched with the way from there.
  std::filesystem::path path = {};
  std::string model = {};
  std::string dataset = {};
  /// "float", "W4A4 per channel".
  std::string quantization = {};
  /// {"weights": 4, "activations": 4}; null for a float run.
  nlohmann::ordered_json bits = {};
  /// "complete"; "stopped at step 12"; "unfinished, at step 12"; "failed: ..."; "broken: ..." with the error.
  std::string state = {};
  bool complete = false;
  /// The measure of the run's task that decides, on the whole test part: the accuracy of classes. None before the end
  /// of a run that has a validation part.
  std::optional<Measure> test = {};
  /// The measure on the validation part.
  std::optional<Measure> validation = {};
  /// What decides about the runs of its task; null where nobody knows this.
  const MeasureKind* decides = nullptr;
  /// The seconds that the command took.
  std::optional<double> seconds = {};
  /// text_of_commands(), or in brackets what is wrong with commands.json.
  std::string command = {};
  /// commands.json; empty for a run of an earlier version, which has none.
  nlohmann::ordered_json commands = nlohmann::ordered_json::array();
  /// When the run last wrote one of its files.
  std::filesystem::file_time_type written = {};

  nlohmann::ordered_json json() const;
};

/// The runs in a folder and in those below it, the newest last. What is wrong with a run is its state. The stages of
/// `quantize` are part of its run. Throws Error if `folder` is no folder or cannot be read.
std::vector<ListedRun> list_runs(const std::filesystem::path& folder);

}  // namespace miniqat::training
