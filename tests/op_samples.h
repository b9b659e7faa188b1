#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/tensors/tensor.h"

namespace miniqat::testing {

/// One way to use an op, on which the registry test proves it: gradient check in double on the reference loops, fast
/// against reference in float32 (forward and backward), graph JSON round trip.
struct OpSample {
  std::string type;
  /// What is special about this sample, unique within the type: "stride 2 SAME".
  std::string label;
  /// The node's "attrs" as JSON text.
  std::string attributes = "{}";
  std::vector<TensorSpec> inputs;
  /// Inputs are drawn uniformly from [low, high] (integers: whole numbers in [low, high)), from a fixed seed...
  double low = -1;
  double high = 1;
  /// ... except where explicit values are given, by input index (empty: drawn).
  std::vector<std::vector<double>> values = {};
  /// Inputs that are Variables instead of Placeholders (those which the op updates).
  std::vector<int> variables = {};
  bool training = true;
  /// Inputs whose gradient a finite difference cannot check, with the reason; these are compared fast against reference
  /// only.
  std::map<int, std::string> unchecked_gradients = {};
};

/// What the tables are written with.
inline TensorSpec floats(const Shape& shape) { return {shape, DType::kFloat32}; }
inline OpSample evaluating(OpSample sample) {
  sample.training = false;
  return sample;
}

/// A use that shape inference must refuse.
struct BadOpSample {
  std::string type;
  std::string label;
  std::string attributes = "{}";
  std::vector<TensorSpec> inputs;
  /// A part of the message that must appear (the message must also name type and node).
  std::string message;
};

/// Every op's. Every registered op needs a sample and a bad sample.
std::vector<OpSample> all_samples();
std::vector<BadOpSample> all_bad_samples();

/// An op of one float tensor of any shape, without attributes, and the range of its samples' numbers.
struct UnaryType {
  std::string type;
  double low = 0;
  double high = 0;
};
/// The ops whose samples all are of that kind, sorted: fuzzers and random nets use them without a word about each.
std::vector<UnaryType> unary_types();

// The tables, a pair for a group of ops, in op_samples_<group>.cpp.
std::vector<OpSample> layer_samples();
std::vector<BadOpSample> bad_layer_samples();
std::vector<OpSample> pointwise_samples();
std::vector<BadOpSample> bad_pointwise_samples();
std::vector<OpSample> structure_samples();
std::vector<BadOpSample> bad_structure_samples();
std::vector<OpSample> fake_quant_samples();
std::vector<BadOpSample> bad_fake_quant_samples();
std::vector<OpSample> folding_samples();
std::vector<BadOpSample> bad_folding_samples();

}  // namespace miniqat::testing
