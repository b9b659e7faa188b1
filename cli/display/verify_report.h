#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "training/verify/verifier.h"

namespace miniqat::cli {

/// What is demanded of a verification; none where nothing is demanded.
struct Bounds {
  /// Points of accuracy (percent) between the evaluation graph, in either arithmetic, and the integer engine.
  std::optional<double> accuracy_difference;
  /// Percent of examples on which the evaluation graph and the integer engine choose the same class.
  std::optional<double> agreement;
  /// Steps between an operation and its simulation, given equal inputs.
  std::optional<int> steps;
  /// Percent of examples on which another runtime and the integer engine choose the same class.
  std::optional<double> runtime_agreement;
};

/// What became of one bound.
struct BoundCheck {
  /// The name of its flag: "max_steps".
  std::string name;
  double bound = 0;
  /// The worst of what was compared; none where nothing could be.
  std::optional<double> value;
  /// A line for each way in which it does not hold.
  std::vector<std::string> faults = {};
};

/// A whole verification: what it compared, and other runtimes' scores or why they have none.
struct VerifyReport {
  /// The run directory, and its network's name, quantization ("W4A8 per channel") and widths in bits.
  std::string run;
  std::string model;
  std::string quantization;
  training::IntegerBits bits;
  /// The data set whose test pictures were compared.
  std::string dataset;
  /// A test example in words.
  std::string noun = "picture";
  training::Verification verification;
  std::vector<training::Score> runtimes;
  /// "left out: tflite: ... of 4 bits ...": no fault of anyone.
  std::vector<std::string> left_out;
  /// "onnx failed: ...": a runtime that was there, and could not.
  std::vector<std::string> failed;
  Bounds bounds;

  std::string title() const;
  /// For people.
  std::string table() const;
  nlohmann::ordered_json json() const;
  /// The checks of the bounds that were given.
  std::vector<BoundCheck> checks() const;
  /// The faults of all bounds, and one when fast engine and reference loops differ.
  std::vector<std::string> broken() const;
};

}  // namespace miniqat::cli
