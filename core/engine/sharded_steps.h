#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/feeds.h"
#include "core/engine/plan/plan.h"
#include "core/engine/shard_exchange.h"
#include "core/engine/sweep.h"
#include "core/engine/worker_threads.h"
#include "core/tensors/tensor.h"

namespace miniqat {

/// The number of a loss, float32 or float64.
inline double scalar_of(const Tensor& tensor) {
  return tensor.dtype() == DType::kFloat64 ? *tensor.data<double>() : *tensor.data<float>();
}

/// The sums of both halves of a batch's slices; `right` is undefined if there is one slice.
struct GradientHalves {
  Tensor left;
  Tensor right;
};

/// Adds the gradients of slices in a balanced binary tree over the slices, ((0 + 1) + (2 + 3)) + ..., whatever the
/// order in which they come: the sum has the same bits. The last addition is left to the caller, who may have more
/// threads for it then. Any threads may add at once. Working memory grows with the number of unfinished subtrees and
/// stays.
class GradientTree {
 public:
  /// `leaves`: slices, a power of two. `tensors`: gradients a slice has.
  GradientTree(int leaves, std::size_t tensors);

  /// Forgets what was added; results of earlier calls are no longer valid.
  void begin();
  /// The gradient of one tensor by one slice: float32 or float64, one shape for all slices. Once each since begin().
  /// Returns the halves if this was the last one to come; both may be overwritten. `stays`: the gradient's memory is
  /// not used for anything else until the next begin(), so that it need not be copied.
  std::optional<GradientHalves> add(std::size_t tensor, int leaf, const Tensor& gradient, bool stays);

 private:
  struct Sum {
    Tensor tensor = {};
    /// One of Sums::buffers.
    bool is_buffer = false;
  };
  /// The sums of one tensor.
  struct Sums {
    std::mutex mutex;
    /// For each node of the tree (1 is the root, node i has the children 2 i and 2 i + 1), a sum that waits for the
    /// other child's.
    std::vector<Sum> waiting;
    std::vector<Tensor> buffers;
    std::vector<Tensor> free;
  };

  static Sum kept(Sums& sums, const Sum& sum, bool stays);

  const std::size_t leaves_;
  std::deque<Sums> sums_;
};

/// The plans of a training step of which each slice of the batch is computed by itself.
struct ShardedPlan {
  /// PlanRequest::precision.
  DType precision = DType::kFloat32;
  /// One for each worker.
  std::vector<std::unique_ptr<Plan>> plans;
  /// For each step in Plan::backward, the gradients that are complete after that step.
  std::vector<std::vector<std::size_t>> complete_after;
  std::unique_ptr<GradientTree> tree;
  /// In the order of PlanRequest::gradient_targets: after compute() the mean over all slices; undefined where the
  /// gradient does not reach a target.
  std::vector<Tensor> gradients;

  /// The plan whose staged tensors compute() leaves as the whole batch has them.
  Plan& first() const { return *plans.front(); }
};

/// Training steps of a session whose feeds are several slices (ShardOptions): runs them side by side and puts together
/// losses, gradients and what ops observe.
class ShardedSteps {
 public:
  /// Binds the variables of a new plan.
  using BindVariables = std::function<void(Plan&)>;

  /// Throws what require_subtree() throws, and Error unless threads and slices at once are at least 1.
  explicit ShardedSteps(const ShardOptions& options);

  const ShardRange& range() const { return range_; }
  /// All threads that compute slices: for loops over variables, whose bits do not depend on it.
  int threads() const { return threads_; }
  /// Compiled in the first call for a request with one fetch, the loss.
  ShardedPlan& plan_for(const Graph& graph, PlanRequest request, const BindVariables& bind_variables);
  void clear() { plans_.clear(); }

  /// Returns the loss of the whole batch: the mean of the slices' losses. `how` says everything but the slice. Throws
  /// Error for feeds that are not this process's slices.
  double compute(ShardedPlan& plan, const Graph& graph, const Feeds& feeds, const Sweep& how);
  /// After compute(): the slices of the whole batch whose losses are not finite, in order. With an exchange all
  /// processes have to call it together.
  std::vector<int> non_finite_slices() const;

 private:
  void compute_slices(ShardedPlan& plan, const std::vector<Feeds>& feeds, const Sweep& how, int worker);
  void add_gradients(ShardedPlan& plan, const Plan& of_worker, std::size_t step, int local, bool last);
  void combine_statistics();
  void store_observed(ShardedPlan& plan, Backend backend) const;

  ShardExchange& exchange_;
  const ShardRange range_;
  const int threads_;
  WorkerThreads workers_;
  std::map<std::string, ShardedPlan> plans_;
  /// The statistics of each slice: the loss, then what its plan observed. combine_statistics() puts all into the first.
  std::vector<std::vector<ShardStatistic>> statistics_;
  /// The loss of each slice.
  std::vector<double> losses_;
};

/// A training step's plan together with all that a session would otherwise look up by name in every step.
struct TrainingPlan {
  struct Update {
    const std::string* name = nullptr;
    /// Optimizer::multiplicative() changes it.
    bool is_multiplicative = false;
    Tensor* value = nullptr;
    const Tensor* gradient = nullptr;
    std::vector<Tensor*> slots;
  };

  Output loss;
  /// Delays::passed.
  std::int64_t delays_passed = 0;
  Plan* plan = nullptr;
  /// The plans of a step in slices, of which `plan` is the first; null for a step in one piece.
  ShardedPlan* shards = nullptr;
  /// Optimizer::slot_names of the optimizer that the updates are for, and of its multiplicative().
  std::span<const std::string_view> slot_names;
  std::span<const std::string_view> multiplicative_slot_names;
  /// PlanRequest::coded.
  std::vector<Output> coded;
  std::vector<Update> updates;
};

}  // namespace miniqat
