#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/engine/session.h"
#include "core/graph/graph.h"
#include "optim/sgd.h"
#include "quantize/rewrite/rewrite.h"

namespace miniqat::benchmarks {

/// What is trained.
struct Workload {
  std::string model;
  std::int64_t batch = 128;
  /// Pixels a side; 0 takes the model's own.
  std::int64_t side = 0;
  double learning_rate = 0.005;
  /// Times learning_rate, in the comparison with the reference loops: batch norm's statistics of a few pictures magnify
  /// the last bit's rounding, which a small step leaves small.
  double reference_rate = 1;
};

/// In which arithmetic. The phases of a run with batch norms, which differ in what a step has to compute.
enum class Phase {
  kFloat,
  /// Before quant_delay: quantizers observe only.
  kObserving,
  kQuantizing,
  /// Quantizing, and past freeze_bn_delay: batch norms use their moving statistics.
  kFrozen,
};

struct Arithmetic {
  /// As benchmark names have it.
  std::string name;
  Phase phase = Phase::kFloat;
  int bits = 8;
  quantize::BnFold bn_fold = quantize::BnFold::kTf;
};

/// The float arithmetic that the others are compared with.
inline const Arithmetic kFloatArithmetic = {.name = "float"};

/// A model with its loss, SGD (momentum 0.9, weight decay 5e-4) and one batch of noise to learn by heart, on a number
/// of threads of its own: several may take turns. The first steps warm up and pass through the phases to the one asked
/// for.
class Training {
 public:
  Training(const Workload& workload, const Arithmetic& arithmetic, int threads, Backend backend = Backend::kFast);

  /// Sets the thread count and trains for one step; returns the loss.
  float step();
  /// Seconds of a step.
  double timed_step();
  /// Trains until the phase is reached. What is wrong then, or "": losses must be finite and fall.
  std::string warm_up(int steps);

  Session& session() { return *session_; }

 private:
  optim::Sgd optimizer_;
  Phase phase_;
  int threads_;
  Graph graph_;
  Output loss_;
  std::optional<Session> session_;
  Feeds feeds_;
};

/// The fast backend in float against the reference loops, on a few pictures of the workload's: what is wrong in the
/// losses before and after an update, or "".
std::string difference_from_reference(const Workload& workload);

/// Trainings by workload, arithmetic and threads, each set up, verified and warmed up once however many benchmarks
/// measure it, and forgotten when a benchmark asks for another workload (they take memory).
class TrainingPool {
 public:
  /// Null when something is wrong with it: see fault().
  Training* find(const Workload& workload, const Arithmetic& arithmetic, int threads, int warm_up_steps);
  const std::string& fault() const { return fault_; }

 private:
  std::string workload_;
  std::map<std::pair<std::string, int>, Training> trainings_;
  /// What is wrong with the workload, and with the training that was asked for last.
  std::string workload_fault_;
  std::string fault_;
};

}  // namespace miniqat::benchmarks
