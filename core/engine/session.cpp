#include "core/engine/session.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <stdexcept>
#include <utility>

#include "core/engine/profile.h"
#include "core/engine/sharded_steps.h"
#include "core/engine/sweep.h"
#include "core/graph/op_interfaces.h"
#include "core/graph/op_queries.h"
#include "core/graph/source_ops.h"
#include "core/kernels/finite.h"
#include "core/kernels/onednn.h"
#include "core/kernels/onednn_bytes.h"
#include "core/memory/guarded_memory.h"
#include "core/tensors/random.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "core/threads/parallel.h"

namespace miniqat {
namespace {

using enum ProfilePhase;

/// The memory that the update of a variable is given.
std::vector<const void*> addresses_of(const TrainingPlan::Update& update) {
  std::vector<const void*> addresses = {update.value->raw(), update.gradient->raw()};
  for (const Tensor* slot : update.slots) addresses.push_back(slot->raw());
  return addresses;
}

/// Value and slots are read and written, the gradient is read.
PartWork work_of(const TrainingPlan::Update& update) {
  return {.bytes = static_cast<double>(update.value->bytes() * (3 + 2 * update.slots.size()))};
}

/// Throws NonFiniteUpdate. `loss`: that of a training step, which was finite.
void require_finite_update(const Tensor& tensor, std::string_view what, const std::string& name, std::int64_t step,
                           std::optional<double> loss) {
  if (is_finite(tensor)) return;
  bool nan = false;
  with_float_type(tensor, [&]<class T>(T) {
    nan = std::ranges::any_of(tensor.values<T>(), [](T value) { return std::isnan(value); });
  });
  throw NonFiniteUpdate(concat(what, " variable \"", name, "\" became ", nan ? "NaN" : "infinite", " in step ", step,
                               loss ? concat(", though the loss was finite (", *loss, ")") : ""));
}

void require_finite_values(const Plan& plan, std::int64_t step, std::optional<double> loss = {}) {
  for (const Plan::Staged& staged : plan.staged)
    require_finite_update(staged.tensor, "the new value of", staged.variable, step, loss);
}

}  // namespace

bool has_bfloat16_products() { return onednn::has_bfloat16(); }

bool has_int8_products() { return onednn::has_signed_bytes(); }

Session::Session(Graph& graph, SessionOptions options) : graph_(graph), options_(options) {
  if (options.backend == Backend::kFast && options.rounding != FactorRounding::kNone) {
    const bool bytes = options.rounding == FactorRounding::kGradientsToInt8;
    if (!(bytes ? has_int8_products() : has_bfloat16_products()))
      fail(bytes ? "gradients in int8 need AVX-512 VNNI or AMX" : "products in bfloat16 need AVX-512 BF16 or AMX",
           ", which this processor does not have, or MINIQAT_MAX_ISA does not allow");
    if (options.rounding != FactorRounding::kAllToBfloat16 && options.arithmetic != Arithmetic::kInteger)
      fail("gradients in ", bytes ? "int8" : "bfloat16",
           " are those of layers that multiply integers: they need the arithmetic of integers");
  }
  revision_ = graph.revision() - 1;
  refresh();
}

Session::~Session() = default;

/// Follows a graph that was rewritten since the last call: new variables are initialised, plans thrown away.
void Session::refresh() {
  if (revision_ == graph_.revision()) return;
  const FlushDenormals flushed;
  names_.clear();
  trainable_.clear();
  const auto ensure = [this](const std::string& name, const Shape& shape, const Initializer& initializer) {
    names_.push_back(name);
    const auto found = values_.find(name);
    if (found != values_.end() && found->second.shape() == shape) return;
    Tensor value(shape, options_.precision);
    initializer.fill(value, mix(options_.seed, hash_text(name)));
    values_[name] = value;
  };
  for (const Node* node : graph_.nodes()) {
    if (const auto* variable = node->as<Variable>()) {
      ensure(node->name(), node->output_specs()[0].shape, variable->initializer);
      if (variable->trainable) trainable_.push_back(node->output());
    }
    for (const OpState& state : state_of(node->op())) {
      const std::string name = state_name(*node, state);
      if (const Node* other = graph_.find(name); other != nullptr && other->as<Variable>())
        fail(describe(*other), " has the name of a state of ", describe(*node));
      ensure(name, state.shape, Initializer::constant(state.initial));
    }
  }
  delays_ = Delays(graph_);
  forget_plans();
  revision_ = graph_.revision();
}

void Session::forget_plans() {
  plans_.clear();
  if (shards_) shards_->clear();
  training_plans_.clear();
  last_plan_ = nullptr;
}

void Session::set_shards(const ShardOptions& options) {
  auto steps = std::make_unique<ShardedSteps>(options);
  if (steps->range().total == 1) steps = nullptr;
  forget_plans();
  shards_ = std::move(steps);
}

PlanRequest Session::plan_request(const RunRequest& request, const Feeds& feeds) const {
  const bool fast = options_.backend == Backend::kFast;
  return {.fetches = request.fetches,
          .gradients_of = request.gradients_of,
          .gradient_targets = request.gradient_targets,
          .training = request.training,
          .quantization_step = quantization_step_ + (request.training && counts_steps() ? 1 : 0),
          .backend = options_.backend,
          .arithmetic = options_.arithmetic,
          .rounding = request.training && fast ? options_.rounding : FactorRounding::kNone,
          .precision = options_.precision,
          .coded = fast ? coded_placeholders(graph_, feeds) : std::vector<Output>()};
}

Plan& Session::plan_for(const PlanRequest& request) {
  require_requested(graph_, request);
  std::unique_ptr<Plan>& plan = plans_[plan_key(delays_, request)];
  if (!plan) {
    plan = compile_plan(graph_, request);
    bind_variables(*plan);
  }
  last_plan_ = plan.get();
  return *plan;
}

void Session::bind_variables(Plan& plan) {
  for (const Plan::Binding& binding : plan.variables) *binding.tensor = values_.at(binding.node->name());
  for (Plan::Staged& staged : plan.staged) staged.value = &values_.at(staged.variable);
}

void Session::bind(Plan& plan, const Feeds& feeds) {
  const ProfileScope timed(profile_, kOther, "feeds and variables", "(bind)");
  require_feeds(graph_, feeds);
  bind_feeds(plan, feeds, options_.precision);
}

void Session::set_quantization_step(std::int64_t step) {
  if (step < 0) throw std::invalid_argument(concat("quantization_step must not be negative, is ", step));
  quantization_step_ = step;
}

Sweep Session::sweep_of(std::int64_t step) const {
  return {.backend = options_.backend,
          .seed = options_.seed,
          .step = step,
          .slice = 0,
          .profile = profile_,
          .observer = observer_,
          .after_backward = {}};
}

void Session::commit(const Plan& plan) {
  const ProfileScope timed(profile_, kOther, "updated variables", "(copy)");
  for (const Plan::Staged& staged : plan.staged) staged.value->assign(staged.tensor);
  ++step_;
  if (counts_steps()) ++quantization_step_;
}

RunResult Session::run(const RunRequest& request, const Feeds& feeds) {
  const ComputeScope computing;
  const GuardedRun guarded;
  const ProfileStep timed(profile_, step_ + 1);
  refresh();
  if (shards_ && request.training) return run_shards(request, feeds);
  Plan& plan = plan_for(plan_request(request, feeds));
  bind(plan, feeds);
  sweep(plan, sweep_of(step_ + (request.training ? 1 : 0)));
  RunResult result;
  for (const Tensor* fetch : plan.fetches) result.fetched.push_back(fetch->clone());
  for (std::size_t k = 0; k < plan.gradients.size(); ++k)
    result.gradients.push_back(plan.gradients[k] != nullptr
                                   ? plan.gradients[k]->clone()
                                   : Tensor(request.gradient_targets[k].shape(), options_.precision));
  if (!request.training) return result;
  require_finite_values(plan, step_ + 1);
  commit(plan);
  return result;
}

RunResult Session::run_shards(const RunRequest& request, const Feeds& feeds) {
  if (!request.gradients_of || request.fetches != std::vector{*request.gradients_of})
    fail("a training run in slices must fetch its loss and nothing else, and ask for gradients of it");
  ShardedPlan& plan =
      shards_->plan_for(graph_, plan_request(request, feeds), [this](Plan& fresh) { bind_variables(fresh); });
  const double loss = shards_->compute(plan, graph_, feeds, sweep_of(step_ + 1));
  RunResult result;
  const Tensor& of_slice = *plan.first().fetches.front();
  result.fetched.push_back(Tensor::from<double>(of_slice.shape(), std::vector{loss}).to(options_.precision));
  for (std::size_t k = 0; k < plan.gradients.size(); ++k)
    result.gradients.push_back(plan.gradients[k].defined()
                                   ? plan.gradients[k].clone()
                                   : Tensor(request.gradient_targets[k].shape(), options_.precision));
  require_finite_values(plan.first(), step_ + 1);
  commit(plan.first());
  return result;
}

/// Returns the loss.
double Session::compute_step(const TrainingPlan& training, const Feeds& feeds) {
  if (training.shards != nullptr) {
    if (observer_ != nullptr) fail("steps in slices cannot be observed");
    return shards_->compute(*training.shards, graph_, feeds, sweep_of(step_ + 1));
  }
  bind(*training.plan, feeds);
  sweep(*training.plan, sweep_of(step_ + 1));
  return scalar_of(*training.plan->fetches.front());
}

float Session::train_step(Output loss, const Optimizer& optimizer, const Feeds& feeds) {
  const ComputeScope computing;
  const GuardedRun guarded;
  const ProfileStep timed(profile_, step_ + 1);
  refresh();
  const bool owned =
      graph_.owns(loss.node) && loss.index >= 0 && std::cmp_less(loss.index, loss.node->output_specs().size());
  if (!owned || loss.shape().elements() != 1) fail("a loss must be a scalar of this graph");
  if (options_.precision != DType::kFloat32) fail("optimizers train in float32 only");
  const TrainingPlan& training = training_plan(loss, optimizer, feeds);
  const double value = compute_step(training, feeds);
  if (!std::isfinite(value))
    throw NonFiniteLoss(concat("the loss became ", std::isnan(value) ? "NaN" : "infinite", " in step ", step_ + 1,
                               "; first seen in ",
                               shards_ ? first_non_finite_of_slices(loss, feeds) : first_non_finite(loss, feeds)));
  const ComputeScope updating(shards_ ? shards_->threads() : thread_count());
  require_finite_updates(training, value);
  apply_optimizer(training, optimizer);
  commit(*training.plan);
  return static_cast<float>(value);
}

/// Looked up in the first step of a phase, then found again without an allocation.
TrainingPlan& Session::training_plan(Output loss, const Optimizer& optimizer, const Feeds& feeds) {
  const std::int64_t passed = delays_.passed(quantization_step_ + (counts_steps() ? 1 : 0));
  const std::span<const std::string_view> slot_names = optimizer.slot_names();
  const Optimizer* multiplicative = optimizer.multiplicative();
  const std::span<const std::string_view> multiplicative_slot_names =
      multiplicative == nullptr ? std::span<const std::string_view>() : multiplicative->slot_names();
  for (TrainingPlan& training : training_plans_)
    if (training.loss == loss && training.delays_passed == passed &&
        std::ranges::equal(training.slot_names, slot_names) &&
        std::ranges::equal(training.multiplicative_slot_names, multiplicative_slot_names) &&
        are_coded(graph_, feeds, training.coded)) {
      last_plan_ = training.plan;
      return training;
    }
  const PlanRequest request =
      plan_request({.fetches = {loss}, .gradients_of = loss, .gradient_targets = trainable_, .training = true}, feeds);
  TrainingPlan training{.loss = loss,
                        .delays_passed = passed,
                        .plan = nullptr,
                        .slot_names = slot_names,
                        .multiplicative_slot_names = multiplicative_slot_names,
                        .coded = coded_placeholders(graph_, feeds),
                        .updates = {}};
  if (shards_) {
    training.shards = &shards_->plan_for(graph_, request, [this](Plan& fresh) { bind_variables(fresh); });
    training.plan = last_plan_ = &training.shards->first();
  } else {
    training.plan = &plan_for(request);
  }
  for (std::size_t k = 0; k < trainable_.size(); ++k) {
    if (training.plan->gradients[k] == nullptr) continue;
    const Node& variable = *trainable_[k].node;
    const std::string& name = variable.name();
    const bool is_multiplicative = variable.as<Variable>()->update == VariableUpdateKind::kMultiplicative;
    if (is_multiplicative && multiplicative == nullptr)
      fail(describe(variable), " needs multiplicative updates, which this optimizer does not support");
    TrainingPlan::Update update{.name = &name,
                                .is_multiplicative = is_multiplicative,
                                .value = &values_.at(name),
                                .gradient = shards_ ? &training.shards->gradients[k] : training.plan->gradients[k],
                                .slots = {}};
    for (const std::string_view kind : is_multiplicative ? multiplicative_slot_names : slot_names)
      update.slots.push_back(&slot(kind, name));
    training.updates.push_back(std::move(update));
  }
  return training_plans_.emplace_back(std::move(training));
}

/// A look at every gradient before anything is changed: a finite loss may have others (0 * infinity behind a max, the
/// root of a zero), and after the update nothing would lead back to them.
void Session::require_finite_updates(const TrainingPlan& training, double loss) const {
  const ProfileScope timed(profile_, kOptimizer, "gradients", "(check)");
  for (const TrainingPlan::Update& update : training.updates)
    require_finite_update(*update.gradient, "the gradient of", *update.name, step_ + 1, loss);
  require_finite_values(*training.plan, step_ + 1, loss);
}

void Session::apply_optimizer(const TrainingPlan& training, const Optimizer& optimizer) {
  for (const TrainingPlan::Update& update : training.updates) {
    const GuardedStep guarded([&] { return concat("the update of \"", *update.name, "\""); },
                              [&] { return addresses_of(update); });
    const ProfileScope timed(profile_, kOptimizer, *update.name, "(update)", work_of(update));
    const Optimizer& rule = update.is_multiplicative ? *optimizer.multiplicative() : optimizer;
    rule.apply({.name = *update.name,
                .value = update.value,
                .gradient = update.gradient,
                .slots = update.slots,
                .step = step_ + 1});
  }
}

Tensor& Session::slot(std::string_view kind, const std::string& variable) {
  Tensor& tensor = slots_[concat(kind, "/", variable)];
  const Shape& shape = values_.at(variable).shape();
  if (!tensor.defined() || tensor.shape() != shape) tensor = Tensor(shape);
  return tensor;
}

/// Runs the forward sweep of the failed step once more (the same random numbers, nothing committed) with every tensor
/// kept, and names the first that is not finite.
std::string Session::first_non_finite(Output loss, const Feeds& feeds, std::int64_t slice) {
  RunRequest request{.fetches = {loss}, .training = true};
  std::set<const Node*> needed;
  for (const Plan::ForwardStep& step : plan_for(plan_request(request, feeds)).forward)
    needed.insert(step.members.begin(), step.members.end());
  for (const Node* node : graph_.topological_order()) {
    const bool source = std::ranges::any_of(node->uses(), [&](const Use& use) { return needed.contains(use.node); });
    if (needed.contains(node) || (node->inputs().empty() && source)) request.fetches.push_back(node->output());
  }
  Plan& plan = plan_for(plan_request(request, feeds));
  bind(plan, feeds);
  Sweep how = sweep_of(step_ + 1);
  how.slice = slice;
  sweep(plan, how);
  for (std::size_t k = 1; k < request.fetches.size(); ++k)
    if (!is_finite(*plan.fetches[k])) return describe(*request.fetches[k].node);
  return describe(*loss.node);
}

/// A slice is counted in the whole batch. Of one of this process, the node, too.
std::string Session::first_non_finite_of_slices(Output loss, const Feeds& feeds) {
  const ShardRange& range = shards_->range();
  const std::vector<int> slices = shards_->non_finite_slices();
  for (const int slice : slices)
    if (const int local = slice - range.first; local >= 0 && local < range.count)
      return concat(first_non_finite(loss, slice_of(feeds, local), slice), " of slice ", slice);
  return slices.empty() ? "the sum over all slices" : concat("slice ", slices.front(), ", in another process");
}

Tensor Session::variable(const std::string& name) {
  refresh();
  if (std::ranges::find(names_, name) == names_.end()) fail("the graph has no variable \"", name, "\"");
  return values_.at(name);
}

void Session::set_variable(const std::string& name, const Tensor& value) {
  Tensor current = variable(name);
  if (!value.defined()) fail("the new value of variable \"", name, "\" is an empty tensor");
  if (value.shape() != current.shape())
    fail("variable \"", name, "\" has shape ", current.shape(), ", not ", value.shape());
  const Tensor converted = value.to(current.dtype());
  if (!is_finite(converted)) fail("the new value of variable \"", name, "\" is not finite");
  require_variance(graph_, name, converted, "");
  current.assign(converted);
}

NamedTensors Session::variables() {
  refresh();
  NamedTensors named;
  for (const std::string& name : names_) named.emplace(name, values_.at(name));
  return named;
}

std::vector<PlannedLayer> Session::layers_of_training(Output loss) {
  refresh();
  PlanRequest request =
      plan_request({.fetches = {loss}, .gradients_of = loss, .gradient_targets = trainable_, .training = true}, {});
  request.quantization_step = std::numeric_limits<std::int64_t>::max();
  return planned_layers(graph_, request);
}

PlanMemory Session::plan_memory() const { return last_plan_ == nullptr ? PlanMemory{} : last_plan_->memory; }

namespace {

constexpr std::string_view kOptimizerPrefix = "optimizer:";
constexpr std::string_view kTrainingStep = "session:step";
constexpr std::string_view kQuantizationStep = "session:quantization_step";

/// Not a variable: no node's name holds a colon.
bool is_extra(const std::string& name) { return name.find(':') != std::string::npos; }
bool is_counter(const std::string& name) { return name == kTrainingStep || name == kQuantizationStep; }

std::int64_t counter(const Safetensors& content, std::string_view name, const std::string& source) {
  const auto found = content.tensors.find(std::string(name));
  if (found == content.tensors.end()) fail(source, ": ", quote(name), " is missing");
  const Tensor& tensor = found->second;
  if (tensor.dtype() != DType::kInt64 || tensor.elements() != 1 || *tensor.data<std::int64_t>() < 0)
    fail(source, ": ", quote(name), " must be one int64 that is not negative");
  return *tensor.data<std::int64_t>();
}

void require_shape(const std::string& name, const Tensor& tensor, const Shape& wanted, const std::string& source) {
  if (tensor.shape() != wanted)
    fail(source, ": ", quote(name), " has shape ", tensor.shape(), ", the graph wants ", wanted);
  if (tensor.dtype() != DType::kFloat32)
    fail(source, ": ", quote(name), " is ", name_of(tensor.dtype()), ", expected float32");
}

/// Variables that ops find out by themselves while they train, ranges for instance; one of another shape may start
/// anew.
std::set<std::string> observed_variables(const Graph& graph) {
  std::set<std::string> names;
  for (const Node* node : graph.nodes())
    if (const OpTraits traits = node->op().traits(); traits.updates_start_anew)
      for (const int k : traits.updated_inputs) names.insert(node->input(k).node->name());
  return names;
}

/// The state of an op between its runs, which evaluation does not need: "<node>/<state>".
std::set<std::string> state_names(const Graph& graph) {
  std::set<std::string> names;
  for (const Node* node : graph.nodes())
    for (const OpState& state : state_of(node->op())) names.insert(state_name(*node, state));
  return names;
}

/// Says of each tensor of a checkpoint, and of each variable, what becomes of it. Changes nothing.
class Sorting {
 public:
  Sorting(const Graph& graph, NamedTensors current, Session::Restore mode, const std::string& source)
      : graph_(graph), current_(std::move(current)), mode_(mode), source_(source) {
    if (mode == Session::Restore::kByName) observed_ = observed_variables(graph);
  }

  void add(const std::string& name, const Tensor& tensor) {
    if (const auto found = current_.find(name); found != current_.end())
      add_variable(name, tensor, found->second.shape());
    else if (is_exact() && name.starts_with(kOptimizerPrefix))
      add_slot(name, tensor);
    else if (is_exact() ? !is_counter(name) : !is_extra(name))
      add_unused(name);
  }

  /// Which variables the checkpoint lacks; throws when that may not be.
  void find_missing(const NamedTensors& content) {
    const std::set<std::string> op_states = state_names(graph_);
    std::vector<std::string> missing;
    for (const auto& [name, value] : current_) {
      if (content.contains(name)) continue;
      report.fresh.push_back(name);
      if (is_exact() || (mode_ == Session::Restore::kVariables && !op_states.contains(name))) missing.push_back(name);
    }
    if (missing.empty()) return;
    std::vector<std::string> names;
    for (const auto& [name, tensor] : content) names.push_back(name);
    const std::string more = missing.size() > 1 ? concat(" (and ", missing.size() - 1, " more)") : "";
    fail(source_, ": variable ", quote(missing.front()), " is missing", more, did_you_mean(missing.front(), names));
  }

  void require_no_surplus() const {
    if (surplus_.empty()) return;
    fail(source_, ": ", quote(surplus_.front()), " is not a variable of the graph (",
         counted(surplus_.size(), "such name"), ")");
  }

  Session::RestoreReport report;
  /// The optimizer's state.
  NamedTensors slots;

 private:
  bool is_exact() const { return mode_ == Session::Restore::kExact; }

  void add_variable(const std::string& name, const Tensor& tensor, const Shape& wanted) {
    if (tensor.shape() != wanted && observed_.contains(name)) {
      report.fresh.push_back(name);
      report.unused.push_back(name);
      return;
    }
    require_shape(name, tensor, wanted, source_);
    report.restored.push_back(name);
  }

  void add_slot(const std::string& name, const Tensor& tensor) {
    const std::string slot = name.substr(kOptimizerPrefix.size());
    const auto variable = current_.find(slot.substr(slot.find('/') + 1));
    if (variable == current_.end())
      fail(source_, ": ", quote(name), " is the state of a variable that the graph does not have");
    require_shape(name, tensor, variable->second.shape(), source_);
    slots.emplace(slot, tensor.clone());
  }

  void add_unused(const std::string& name) {
    report.unused.push_back(name);
    // In evaluation, ops may do without the state that they had in training.
    const bool op_state = mode_ == Session::Restore::kVariables && graph_.find(scope_of(name)) != nullptr;
    if (mode_ != Session::Restore::kByName && !op_state) surplus_.push_back(name);
  }

  const Graph& graph_;
  const NamedTensors current_;
  const Session::Restore mode_;
  const std::string& source_;
  /// Variables that start anew where the checkpoint has them in another shape.
  std::set<std::string> observed_;
  std::vector<std::string> surplus_;
};

}  // namespace

Safetensors Session::checkpoint() {
  Safetensors content;
  for (const auto& [name, value] : variables()) content.tensors.emplace(name, value.clone().to(DType::kFloat32));
  for (const auto& [name, value] : slots_) {
    const bool current = content.tensors.contains(name.substr(name.find('/') + 1));
    if (current) content.tensors.emplace(std::string(kOptimizerPrefix) + name, value.clone());
  }
  // restore() would refuse it: an update overflowed (that of a variable, or of an optimizer's state).
  for (const auto& [name, tensor] : content.tensors)
    if (!is_finite(tensor))
      throw NonFiniteUpdate(concat("\"", name, "\" is not finite after step ", step_, ": an update has overflowed"));
  content.tensors.emplace(kTrainingStep, Tensor::scalar(step_));
  content.tensors.emplace(kQuantizationStep, Tensor::scalar(quantization_step_));
  return content;
}

Session::RestoreReport Session::restore(const Safetensors& content, Restore mode, const std::string& source) {
  Sorting sorting(graph_, variables(), mode, source);
  for (const auto& [name, tensor] : content.tensors) {
    if (!tensor.defined()) fail(source, ": ", quote(name), " holds nothing");
    sorting.add(name, tensor);
  }
  sorting.find_missing(content.tensors);
  sorting.require_no_surplus();
  require_finite(content.tensors, source);
  for (const std::string& name : sorting.report.restored)
    require_variance(graph_, name, content.tensors.at(name), source);
  if (mode == Restore::kExact) {
    const std::int64_t step = counter(content, kTrainingStep, source);
    quantization_step_ = counter(content, kQuantizationStep, source);
    step_ = step;
    slots_ = std::move(sorting.slots);
    training_plans_.clear();
  }
  if (mode == Restore::kByName) {
    step_ = quantization_step_ = 0;
    slots_.clear();
    training_plans_.clear();
  }
  for (const std::string& name : sorting.report.restored) values_.at(name).assign(content.tensors.at(name));
  return std::move(sorting.report);
}

}  // namespace miniqat
