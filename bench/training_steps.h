#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/measure/rounds.h"
#include "bench/measure/this_machine.h"

namespace miniqat::bench {

struct StepTime {
  std::string model;
  /// "float", or how it is quantized.
  std::string what;
  std::int64_t batch = 0;
  int threads = 1;
  /// Seconds of one training step (forward, backward, SGD with momentum), in the order of the rounds.
  std::vector<double> rounds;
  /// The time as a multiple of the float step's, taken in turns.
  Spread over_float;
  /// Bytes of the plan's activations, gradients and saved tensors.
  std::size_t arena = 0;

  double images_per_second() const { return static_cast<double>(batch) / spread_of(rounds).median; }
};

/// All steps of a model, which took turns, and what disturbed these turns (not checks and compilation before them).
struct ModelTimes {
  std::vector<StepTime> rows;
  Disturbance disturbance;
};

/// A model in float and with 8-bit QAT, float first; one with batch norm in every phase of its folding. `batch` 0 is
/// what suits the model; of a larger one than the budget has time for, as many pictures are taken as it has time for.
/// Throws Error for an unknown model, and when a part of the first step is not what the reference loops make of the
/// same numbers (judge/step_judge.h).
ModelTimes bench_steps(const std::string& model, std::int64_t batch, double budget_seconds);

/// Training speeds in images/s, in the order of the rounds.
struct LoadedSpeed {
  std::string model;
  /// "none", "same session" or "own sessions".
  std::string neighbours;
  std::int64_t batch = 0;
  int threads = 0;
  std::vector<double> all_threads = {}, one_thread = {};
  /// all_threads as a multiple of the better of half the speed without neighbours and one_thread; none without
  /// neighbours.
  std::vector<double> of_bar = {};
  /// What disturbed the rounds: load other than the neighbours'. Beside these, being interrupted is no disturbance.
  Disturbance disturbance = {};
};

/// A model's W8A8 training steps on thread_count() threads and on one, without neighbours and beside both kinds of them
/// in turns, five rounds. `check` is called after each step; what it throws passes on, neighbours gone.
std::vector<LoadedSpeed> bench_loaded(const std::string& model, double budget_seconds,
                                      const std::function<void()>& check);

}  // namespace miniqat::bench
