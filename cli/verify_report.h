#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/verifier.h"

namespace miniqat::cli {

/// What a user demands of a verification; none where nothing is demanded.
struct Bounds {
  /// Points of accuracy (percent) between the simulated graph and the integer engine.
  std::optional<double> accuracy_difference;
  /// Percent of examples on which the simulated graph and the integer engine choose the same class.
  std::optional<double> agreement;
  /// Steps between an operation and its simulation, given equal inputs.
  std::optional<int> steps;
  /// Percent of examples on which another runtime and the integer engine choose the same class.
  std::optional<double> runtime_agreement;
};

/// A whole verification: what it compared, and other runtimes' scores or why they have none.
struct VerifyReport {
  std::string title;
  Verification verification;
  std::vector<Score> runtimes;
  /// "left out: tflite: ... of 4 bits ...": no fault of anyone.
  std::vector<std::string> left_out;
  /// "onnx failed: ...": a runtime that was there, and could not.
  std::vector<std::string> failed;

  /// For people.
  std::string table() const;
  nlohmann::ordered_json json() const;
  /// A line for each bound that does not hold, and one when fast engine and reference loops differ.
  std::vector<std::string> broken(const Bounds& bounds) const;
};

}  // namespace miniqat::cli
