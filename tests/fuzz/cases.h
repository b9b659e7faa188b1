#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/tensors/random.h"
#include "tests/fuzz/graph_case.h"
#include "tests/fuzz/integer_case.h"

namespace miniqat::fuzz {

// Each a pure function of its seed.

/// A convolution of some kind: filters of 1, 3, 5 or unequal sides, strides, dilations, either padding, 1 to 67
/// channels; or a large product of matrices. Some are behind quantizers.
GraphCase convolution_case(std::uint64_t seed);

/// Any op on random attributes and shapes, or several that the plan runs as one.
GraphCase op_case(std::uint64_t seed);

/// A random net (tests/quantize/random_net.h), rewritten for training by random options, for some steps before or after
/// quantization begins and batch norms freeze; or for evaluation.
GraphCase net_case(std::uint64_t seed);

/// Throws Error that names a registered op which op_case never makes.
void require_all_ops();

// Each a pure function of its seed.

/// A random integer model for the fast engine, on 1 to 8 threads; or one that a briefly trained random net converts to,
/// also beside the simulated graph.
std::vector<IntegerCase> integer_cases(std::uint64_t seed);

/// A few random models and trained nets as C; for ONNX Runtime single operations, random ones and those of the nets:
/// it rounds ties otherwise, and what follows may magnify the step that this makes.
std::vector<IntegerCase> c_cases(std::uint64_t seed);
std::vector<IntegerCase> onnx_cases(std::uint64_t seed);

/// An operation of one input by itself, on what the reference loops give it.
IntegerCase alone(const IntegerCase& test, std::size_t index);

/// Some steps of Sgd, Adam or LogAdam with random options on a variable of a random shape and 1 to 8 threads, beside
/// the formulas of optim/sgd.h, optim/adam.h and optim/log_adam.h in double, step by step from the same numbers.
/// Returns what is wrong, "" when all is well; adds to `compared`. A pure function of the seed.
std::string judge_optimizer(std::uint64_t seed, std::int64_t& compared);

/// The command line.
struct Arguments {
  std::uint64_t seed = 0;
  std::int64_t cases = 0;
  double seconds = 0;
  std::string stage = "all";
  std::string isa = "all";
  std::string replay;
  std::string out = "differential-findings";
  std::int64_t first = 0;
  int keep_going = 1;
  /// Seconds for a finding.
  double shrink = 60;
  /// Percent; negative: any share.
  double most_vague = -1;
  /// Set for the process that runs cases: where it says which one it is at.
  std::string progress;
};

}  // namespace miniqat::fuzz
