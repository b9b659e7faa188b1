#include "core/engine/session.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/engine/profile.h"
#include "core/engine/step_observer.h"
#include "core/engine/training_plan.h"
#include "core/graph/op_interfaces.h"
#include "core/graph/source_ops.h"
#include "core/guarded_memory.h"
#include "core/kernels/finite.h"
#include "core/parallel.h"
#include "core/random.h"

namespace miniqat {
namespace {

using enum ProfilePhase;

template <class T>
void add_to(std::span<T> total, std::span<const T> part) {
  parallel_for(static_cast<std::int64_t>(total.size()), kPointwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) total[i] += part[i];
  });
}

void add_to(Tensor& total, const Tensor& part) {
  with_float_type(total, [&]<class T>(T) { add_to<T>(total.values<T>(), part.values<T>()); });
}

using Addresses = std::vector<const void*>;

void add_addresses(const auto& tensors, Addresses& addresses) {
  for (const Tensor* tensor : tensors)
    if (tensor != nullptr && tensor->defined()) addresses.push_back(tensor->raw());
}

/// The memory that an op is given.
Addresses addresses_of(const ForwardContext& context) {
  Addresses addresses;
  add_addresses(context.inputs, addresses);
  for (const auto& tensors : {context.outputs, context.saved, context.updates, context.state, {context.packed}})
    add_addresses(tensors, addresses);
  return addresses;
}

Addresses addresses_of(const BackwardContext& context) {
  Addresses addresses = addresses_of(*context.forward);
  add_addresses(context.d_outputs, addresses);
  add_addresses(context.d_inputs, addresses);
  return addresses;
}

/// Runs `body`. Puts the node's name before an error of the op (a label that is not a class, say).
template <class Context, class Body>
void in_the_name_of(const Node& node, std::string_view direction, const Context& context, const Body& body) {
  const GuardedStep guarded([&] { return concat(describe(node), " (", direction, ")"); },
                            [&] { return addresses_of(context); });
  try {
    body();
  } catch (const Error& error) {
    fail(describe(node), " ", error.what());
  }
}

/// Times a step of a plan. Nodes that run as one go by the scope they are in: its op says which they are.
ProfileScope time_step(Profile* profile, ProfilePhase phase, const Node& node, const Op& op) {
  if (profile == nullptr) return {nullptr, phase, {}, {}};
  const std::string_view name = node.name();
  const std::size_t slash = name.rfind('/');
  const bool fused = &op != &node.op();
  return {profile, phase, fused && slash != std::string_view::npos ? name.substr(0, slash) : name, op.type()};
}

double scalar_value(const Tensor& tensor) {
  return tensor.dtype() == DType::kFloat64 ? *tensor.data<double>() : *tensor.data<float>();
}

}  // namespace

Session::Session(Graph& graph, SessionOptions options) : graph_(graph), options_(options) {
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
    for (const OpState& state : state_of(node->op()))
      ensure(state_name(*node, state), state.shape, Initializer::constant(state.initial));
  }
  delays_ = Delays(graph_);
  plans_.clear();
  training_plans_.clear();
  last_plan_ = nullptr;
  revision_ = graph_.revision();
}

PlanRequest Session::plan_request(const RunRequest& request) const {
  return {.fetches = request.fetches,
          .gradients_of = request.gradients_of,
          .gradient_targets = request.gradient_targets,
          .training = request.training,
          .quantization_step = quantization_step_ + (request.training && counts_steps() ? 1 : 0),
          .backend = options_.backend,
          .precision = options_.precision};
}

Plan& Session::plan_for(const PlanRequest& request) {
  std::unique_ptr<Plan>& plan = plans_[plan_key(graph_, request)];
  if (!plan) {
    plan = compile_plan(graph_, request);
    for (const Plan::Binding& binding : plan->variables) *binding.tensor = values_.at(binding.node->name());
    for (Plan::Staged& staged : plan->staged) staged.value = &values_.at(staged.variable);
  }
  last_plan_ = plan.get();
  return *plan;
}

void Session::bind(Plan& plan, const Feeds& feeds) {
  const ProfileScope timed(profile_, kOther, "feeds and variables", "(bind)");
  for (const auto& [output, tensor] : feeds) {
    if (!graph_.owns(output.node)) fail("a fed tensor is not of this graph");
    if (output.node->as<Placeholder>() == nullptr)
      fail(describe(*output.node), " cannot be fed: it is not a Placeholder");
    if (!tensor.defined()) fail(describe(*output.node), " was fed an empty tensor");
    if (tensor.spec() != output.spec())
      fail(describe(*output.node), " wants ", name_of(output.spec().dtype), " ", output.shape(), ", was fed ",
           name_of(tensor.dtype()), " ", tensor.shape());
  }
  for (const Plan::Binding& binding : plan.placeholders) {
    const auto fed = std::ranges::find(feeds, binding.node->output(), &Feeds::value_type::first);
    if (fed == feeds.end())
      fail(describe(*binding.node), " must be fed a tensor ", binding.node->output_specs()[0].shape);
    *binding.tensor = fed->second.dtype() == DType::kFloat32 ? fed->second.to(options_.precision) : fed->second;
  }
  for (const Plan::BoundView& view : plan.bound_views) *view.tensor = view.base->reshaped(view.shape);
}

/// Runs all steps of a bound plan: forward in order, then backward.
void Session::sweep(Plan& plan, std::int64_t step) {
  for (const Tensor& stretch : plan.stretches) poison({static_cast<std::byte*>(stretch.raw()), stretch.bytes()});
  {
    const ProfileScope timed(profile_, kOther, "updated variables", "(copy)");
    for (Plan::Staged& staged : plan.staged) staged.tensor.assign(*staged.value);
  }
  for (const Plan::Packed& packed : plan.packed) *packed.tensor = packed.forward_place;
  if (observer_ != nullptr) observer_->begin(plan);
  const bool reference = options_.backend == Backend::kReference;
  for (Plan::ForwardStep& forward : plan.forward) {
    const ProfileScope timed = time_step(profile_, kForward, *forward.node, *forward.op);
    forward.context.random_key = mix(mix(options_.seed, forward.name_hash), static_cast<std::uint64_t>(step));
    const Op& op = *forward.op;
    if (observer_ != nullptr) observer_->before(forward);
    in_the_name_of(*forward.node, "forward", forward.context,
                   [&] { reference ? op.reference_forward(forward.context) : op.forward(forward.context); });
    if (observer_ != nullptr) observer_->after(forward);
  }
  if (plan.seed != nullptr)
    with_float_type(*plan.seed, [&]<class T>(T) { std::ranges::fill(plan.seed->values<T>(), T{1}); });
  for (const Plan::BackwardStep& backward : plan.backward) {
    const Op& op = *backward.op;
    for (const Plan::Packed* packed : backward.unpacks) {
      const ProfileScope timed(profile_, kBackward, backward.node->name(), "(unpack)");
      *packed->tensor = packed->backward_place;
      as<PacksOutput>(*packed->op)->unpack(*packed->forward);
    }
    if (observer_ != nullptr) observer_->before(backward);
    {
      const ProfileScope timed = time_step(profile_, kBackward, *backward.node, op);
      in_the_name_of(*backward.node, "backward", backward.context,
                     [&] { reference ? op.reference_backward(backward.context) : op.backward(backward.context); });
    }
    if (observer_ != nullptr) observer_->after(backward);
    if (backward.sums.empty()) continue;
    const ProfileScope timed(profile_, kBackward, backward.node->name(), "(gradient sum)");
    for (const Plan::Sum& sum : backward.sums) add_to(*sum.total, *sum.part);
  }
  if (observer_ != nullptr) observer_->end(plan);
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
  Plan& plan = plan_for(plan_request(request));
  bind(plan, feeds);
  sweep(plan, step_ + (request.training ? 1 : 0));
  RunResult result;
  for (const Tensor* fetch : plan.fetches) result.fetched.push_back(fetch->clone());
  for (std::size_t k = 0; k < plan.gradients.size(); ++k)
    result.gradients.push_back(plan.gradients[k] != nullptr
                                   ? plan.gradients[k]->clone()
                                   : Tensor(request.gradient_targets[k].shape(), options_.precision));
  if (request.training) commit(plan);
  return result;
}

float Session::train_step(Output loss, const Optimizer& optimizer, const Feeds& feeds) {
  const ComputeScope computing;
  const GuardedRun guarded;
  const ProfileStep timed(profile_, step_ + 1);
  refresh();
  if (loss.node == nullptr || loss.shape().elements() != 1) fail("a loss must be a scalar of this graph");
  if (options_.precision != DType::kFloat32) fail("optimizers train in float32 only");
  const TrainingPlan& training = training_plan(loss, optimizer);
  Plan& plan = *training.plan;
  bind(plan, feeds);
  sweep(plan, step_ + 1);
  const double value = scalar_value(*plan.fetches.front());
  if (!std::isfinite(value))
    throw NonFiniteLoss(concat("the loss became ", std::isnan(value) ? "NaN" : "infinite", " in step ", step_ + 1,
                               "; first seen in ", first_non_finite(loss, feeds)));
  require_finite_updates(training, value);
  apply_optimizer(training, optimizer);
  commit(plan);
  return static_cast<float>(value);
}

/// Looked up in the first step of a phase, then found again without an allocation.
TrainingPlan& Session::training_plan(Output loss, const Optimizer& optimizer) {
  const std::int64_t passed = delays_.passed(quantization_step_ + (counts_steps() ? 1 : 0));
  const std::span<const std::string_view> slot_names = optimizer.slot_names();
  const Optimizer* multiplicative = optimizer.multiplicative();
  const std::span<const std::string_view> multiplicative_slot_names =
      multiplicative == nullptr ? std::span<const std::string_view>() : multiplicative->slot_names();
  for (TrainingPlan& training : training_plans_)
    if (training.loss == loss && training.delays_passed == passed &&
        std::ranges::equal(training.slot_names, slot_names) &&
        std::ranges::equal(training.multiplicative_slot_names, multiplicative_slot_names)) {
      last_plan_ = training.plan;
      return training;
    }
  const PlanRequest request =
      plan_request({.fetches = {loss}, .gradients_of = loss, .gradient_targets = trainable_, .training = true});
  TrainingPlan training{.loss = loss,
                        .delays_passed = passed,
                        .plan = &plan_for(request),
                        .slot_names = slot_names,
                        .multiplicative_slot_names = multiplicative_slot_names,
                        .updates = {}};
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
                                .gradient = training.plan->gradients[k],
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
  const auto require = [&](const Tensor& tensor, std::string_view what, const std::string& name) {
    if (is_finite(tensor)) return;
    bool nan = false;
    with_float_type(tensor, [&]<class T>(T) {
      nan = std::ranges::any_of(tensor.values<T>(), [](T value) { return std::isnan(value); });
    });
    throw NonFiniteUpdate(concat(what, " variable \"", name, "\" became ", nan ? "NaN" : "infinite", " in step ",
                                 step_ + 1, ", though the loss was finite (", loss, ")"));
  };
  const ProfileScope timed(profile_, kOptimizer, "gradients", "(check)");
  for (const TrainingPlan::Update& update : training.updates)
    require(*update.gradient, "the gradient of", *update.name);
  for (const Plan::Staged& staged : training.plan->staged) require(staged.tensor, "the new value of", staged.variable);
}

void Session::apply_optimizer(const TrainingPlan& training, const Optimizer& optimizer) {
  for (const TrainingPlan::Update& update : training.updates) {
    const GuardedStep guarded([&] { return concat("the update of \"", *update.name, "\""); },
                              [&] {
                                Addresses addresses = {update.value->raw(), update.gradient->raw()};
                                add_addresses(update.slots, addresses);
                                return addresses;
                              });
    const ProfileScope timed(profile_, kOptimizer, *update.name, "(update)");
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
std::string Session::first_non_finite(Output loss, const Feeds& feeds) {
  RunRequest request{.fetches = {loss}, .training = true};
  std::set<const Node*> needed;
  for (const Plan::ForwardStep& step : plan_for(plan_request(request)).forward)
    needed.insert(step.members.begin(), step.members.end());
  for (const Node* node : graph_.topological_order()) {
    const bool source = std::ranges::any_of(node->uses(), [&](const Use& use) { return needed.contains(use.node); });
    if (needed.contains(node) || (node->inputs().empty() && source)) request.fetches.push_back(node->output());
  }
  Plan& plan = plan_for(plan_request(request));
  bind(plan, feeds);
  sweep(plan, step_ + 1);
  for (std::size_t k = 1; k < request.fetches.size(); ++k)
    if (!is_finite(*plan.fetches[k])) return describe(*request.fetches[k].node);
  return describe(*loss.node);
}

Tensor Session::variable(const std::string& name) {
  refresh();
  if (std::ranges::find(names_, name) == names_.end()) fail("the graph has no variable \"", name, "\"");
  return values_.at(name);
}

void Session::set_variable(const std::string& name, const Tensor& value) {
  const Tensor current = variable(name);
  if (!value.defined()) fail("the new value of variable \"", name, "\" is an empty tensor");
  if (value.shape() != current.shape())
    fail("variable \"", name, "\" has shape ", current.shape(), ", not ", value.shape());
  const Tensor converted = value.to(current.dtype());
  if (!is_finite(converted)) fail("the new value of variable \"", name, "\" is not finite");
  current.assign(converted);
}

NamedTensors Session::variables() {
  refresh();
  NamedTensors named;
  for (const std::string& name : names_) named.emplace(name, values_.at(name));
  return named;
}

PlanMemory Session::plan_memory() const { return last_plan_ == nullptr ? PlanMemory{} : last_plan_->memory; }

}  // namespace miniqat
