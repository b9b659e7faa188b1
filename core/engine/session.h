#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/feeds.h"
#include "core/engine/optimizer.h"
#include "core/engine/plan/plan_request.h"
#include "core/engine/shard_exchange.h"
#include "core/files/safetensors.h"
#include "core/graph/graph.h"
#include "core/text/error.h"

namespace miniqat {

class Profile;
class ShardedSteps;
class StepObserver;
struct Plan;
struct ShardedPlan;
struct Sweep;
struct TrainingPlan;

/// Whether this processor multiplies bfloat16 (AVX-512 BF16 or AMX) and MINIQAT_MAX_ISA allows it.
bool has_bfloat16_products();
/// Whether it has exact products of signed bytes (AVX-512 VNNI or AMX) and MINIQAT_MAX_ISA allows it.
bool has_int8_products();

struct SessionOptions {
  std::uint64_t seed = 1;
  Backend backend = Backend::kFast;
  /// For the fast backend.
  Arithmetic arithmetic = Arithmetic::kSimulated;
  /// For the fast backend, where has_bfloat16_products() or has_int8_products(); what rounds gradients alone also needs
  /// Arithmetic::kInteger.
  FactorRounding rounding = FactorRounding::kNone;
  /// kFloat64 needs the reference backend.
  DType precision = DType::kFloat32;
};

struct RunRequest {
  std::vector<Output> fetches = {};
  /// Differentiate (the sum of) this tensor with respect to the targets: outputs of Variables and Placeholders.
  std::optional<Output> gradients_of = {};
  std::vector<Output> gradient_targets = {};
  /// Batch statistics, observers and dropout act as in a training step, and updated variables are committed.
  bool training = false;
};

struct RunResult {
  /// Copies, in the order of RunRequest::fetches and gradient_targets. A target that the gradient does not reach gets
  /// zeros.
  std::vector<Tensor> fetched;
  std::vector<Tensor> gradients;
};

/// The loss of a training step was NaN or infinite. Nothing of that step was kept.
class NonFiniteLoss : public Error {
 public:
  using Error::Error;
};

/// A gradient or an updated variable (a moving statistic, a range) was not finite, though in a training step the loss
/// was. Nothing was kept, either: the next loss would not have been finite.
class NonFiniteUpdate : public NonFiniteLoss {
 public:
  using NonFiniteLoss::NonFiniteLoss;
};

/// Runs a graph: holds the variables' values by name, the step counters, the optimizer's state and the compiled plans.
/// The graph must outlive the session and may be rewritten between two calls: variables keep their values by name, new
/// ones are initialised from the seed and their name, plans are compiled again. Same seed, thread count and machine:
/// bitwise the same results. A session (and its graph) is for one thread at a time. Sessions in several threads may run
/// at once, each with workers, oneDNN kernels and working memory of its thread's own; thread_count() is the same for
/// all. The calling thread is left as it was (core/threads/parallel.h, ComputeScope).
class Session {
 public:
  /// Throws Error for a rounding that the options or the processor do not allow.
  explicit Session(Graph& graph, SessionOptions options = {});
  ~Session();

  /// Throws Error for tensors of another graph, and for feeds that are missing, unknown or of the wrong shape. With
  /// `training`, advances both step counters by one first, and throws NonFiniteUpdate for an updated variable that is
  /// not finite; on an exception neither counters nor variables have changed.
  RunResult run(const RunRequest& request, const Feeds& feeds);
  /// One step of training on a scalar loss: forward, backward, optimizer, committed updates. Returns the loss.
  /// Throws NonFiniteLoss naming step and first node with a NaN or infinity, NonFiniteUpdate naming step and first
  /// variable.
  float train_step(Output loss, const Optimizer& optimizer, const Feeds& feeds);

  /// From now on a training step is fed the `count` slices of the exchange's range one after the other in each tensor,
  /// of the placeholders' shape each, out of a batch of `total` slices. Each slice is computed by itself, with
  /// its own batch statistics and provisional ranges; dropout draws by the place in the whole batch. Then loss and
  /// gradients are the means over all slices, gradients added in a balanced binary tree. What ops observe is put
  /// together and stored once: ranges enclose those of all slices, moving statistics take the moments of the whole
  /// batch. The bits depend on `total` and threads alone. With a total of 1, back to steps of one batch.
  /// Runs that do not train are as always. Throws what ShardedSteps throws.
  void set_shards(const ShardOptions& options);

  /// Completed training steps.
  std::int64_t step() const { return step_; }
  /// Completed training steps since the graph first had an op with a delay: a quantizer, or a batch norm that freezes.
  std::int64_t quantization_step() const { return quantization_step_; }
  /// Throws std::invalid_argument for a negative one.
  void set_quantization_step(std::int64_t step);

  /// The current value of a Variable (or op state "<node>/<state>"), shared, not copied. Throws Error when there is
  /// none.
  Tensor variable(const std::string& name);
  /// Throws Error for an unknown name, another shape, values that are not finite, and negative variances.
  void set_variable(const std::string& name, const Tensor& value);
  /// All variables and op states of the graph by name, shared.
  NamedTensors variables();

  /// Everything that a training run needs to go on: variables by name, "optimizer:<slot>/<variable>", the counters as
  /// "session:step" and "session:quantization_step". (No node's name holds a colon.) Throws NonFiniteUpdate for values
  /// that restore() would refuse.
  Safetensors checkpoint();
  /// The result for each name of a file.
  struct RestoreReport {
    std::vector<std::string> restored;
    /// In the graph, not in the file: they keep the values they had.
    std::vector<std::string> fresh;
    /// In the file, not in the graph.
    std::vector<std::string> unused;
  };
  enum class Restore {
    /// Everything must fit: no name missing, none left over; optimizer state and counters are taken too (resuming).
    kExact,
    /// The graph's variables must all be there and nothing else (evaluation). Optimizer state and counters are
    /// ignored, and an op's own state may be missing.
    kVariables,
    /// Restores the tensors that fit by name (another run's weights as a starting point). Optimizer state and counters
    /// start anew.
    kByName,
  };
  /// Throws Error, having changed nothing, for names that are missing or left over (as the mode has it), another shape
  /// or dtype, tensors that hold nothing, values that are not finite, and negative variances. `source` names the file
  /// in errors.
  RestoreReport restore(const Safetensors& content, Restore mode, const std::string& source);

  /// The layers of a training step on this loss once all delays have passed, in their order.
  std::vector<PlannedLayer> layers_of_training(Output loss);
  /// The memory of the plan used last; zeros before the first run.
  PlanMemory plan_memory() const;
  /// Times the parts of every run and training step from now on, into a profile that must stay; null for no more. Of
  /// slices that are computed side by side, those of the calling thread are timed.
  void set_profile(Profile* profile) { profile_ = profile; }
  /// Shows the steps of every run and training step from now on to an observer that must stay; null for no more. Steps
  /// in slices cannot be shown: they throw Error.
  void set_observer(StepObserver* observer) { observer_ = observer; }
  Graph& graph() { return graph_; }

 private:
  void refresh();
  void forget_plans();
  Plan& plan_for(const PlanRequest& request);
  PlanRequest plan_request(const RunRequest& request, const Feeds& feeds) const;
  void bind(Plan& plan, const Feeds& feeds);
  void bind_variables(Plan& plan);
  Sweep sweep_of(std::int64_t step) const;
  void commit(const Plan& plan);
  RunResult run_shards(const RunRequest& request, const Feeds& feeds);
  TrainingPlan& training_plan(Output loss, const Optimizer& optimizer, const Feeds& feeds);
  void apply_optimizer(const TrainingPlan& training, const Optimizer& optimizer);
  double compute_step(const TrainingPlan& training, const Feeds& feeds);
  std::string first_non_finite(Output loss, const Feeds& feeds, std::int64_t slice = 0);
  std::string first_non_finite_of_slices(Output loss, const Feeds& feeds);
  void require_finite_updates(const TrainingPlan& training, double loss) const;
  Tensor& slot(std::string_view kind, const std::string& variable);
  /// Whether some op waits for a quantization step.
  bool counts_steps() const { return !delays_.empty(); }

  Graph& graph_;
  SessionOptions options_;
  std::int64_t step_ = 0;
  std::int64_t quantization_step_ = 0;
  /// Variables and op states by name, in the session's precision.
  NamedTensors values_;
  /// Optimizer state by "<slot>/<variable>".
  NamedTensors slots_;
  std::map<std::string, std::unique_ptr<Plan>> plans_;
  Plan* last_plan_ = nullptr;
  /// For the phases of training so far; they point into plans_, values_ and slots_.
  std::vector<TrainingPlan> training_plans_;
  /// Null unless set_shards() wants slices.
  std::unique_ptr<ShardedSteps> shards_;
  Profile* profile_ = nullptr;
  StepObserver* observer_ = nullptr;
  /// Derived from the graph at this revision.
  std::uint64_t revision_ = 0;
  std::vector<std::string> names_;
  std::vector<Output> trainable_;
  Delays delays_;
};

}  // namespace miniqat
