#include "core/engine/sharded_steps.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/graph/op_interfaces.h"
#include "core/text/error.h"

namespace miniqat {

GradientTree::GradientTree(int leaves, std::size_t tensors)
    : leaves_(static_cast<std::size_t>(leaves)), sums_(tensors) {
  for (Sums& sums : sums_) sums.waiting.resize(2 * leaves_);
}

void GradientTree::begin() {
  for (Sums& sums : sums_) {
    for (Sum& sum : sums.waiting) sum = {};
    sums.free = sums.buffers;
  }
}

std::optional<GradientHalves> GradientTree::add(std::size_t tensor, int leaf, const Tensor& gradient, bool stays) {
  Sums& sums = sums_[tensor];
  Sum sum{gradient};
  for (std::size_t node = leaves_ + static_cast<std::size_t>(leaf); node > 1; node /= 2) {
    Sum other;
    {
      const std::lock_guard lock(sums.mutex);
      other = std::exchange(sums.waiting[node ^ 1], {});
      // (While a gradient is copied, others wait who come to this tensor.)
      if (!other.tensor.defined() || node / 2 == 1) sum = kept(sums, sum, stays);
      if (!other.tensor.defined()) {
        sums.waiting[node] = sum;
        return std::nullopt;
      }
    }
    if (node == 2) return GradientHalves{sum.tensor, other.tensor};
    if (node == 3) return GradientHalves{other.tensor, sum.tensor};
    // a + b is b + a: only the brackets matter.
    add_to(other.tensor, sum.tensor);
    if (sum.is_buffer) {
      const std::lock_guard lock(sums.mutex);
      sums.free.push_back(sum.tensor);
    }
    sum = other;
    stays = true;
  }
  return GradientHalves{sum.tensor, {}};
}

/// Where nobody else writes.
GradientTree::Sum GradientTree::kept(Sums& sums, const Sum& sum, bool stays) {
  if (stays || sum.is_buffer) return sum;
  if (sums.free.empty()) sums.free.push_back(sums.buffers.emplace_back(sum.tensor.spec()));
  Tensor copy = sums.free.back();
  sums.free.pop_back();
  copy.assign(sum.tensor);
  return {copy, true};
}

namespace {

ShardRange checked_range(const ShardOptions& options) {
  const ShardRange range = options.exchange.range();
  require_subtree(range);
  if (options.threads < 1) fail("a slice needs at least 1 thread, not ", options.threads);
  if (options.at_once < 1) fail("at least 1 slice must be computed at once, not ", options.at_once);
  return range;
}

/// Calls abandon() unless the step has come to the exchange's combine().
class LeavesTogether {
 public:
  explicit LeavesTogether(ShardExchange& exchange) : exchange_(&exchange) {}
  ~LeavesTogether() {
    if (exchange_ != nullptr) exchange_->abandon();
  }
  LeavesTogether(const LeavesTogether&) = delete;
  LeavesTogether& operator=(const LeavesTogether&) = delete;
  void reached() { exchange_ = nullptr; }

 private:
  ShardExchange* exchange_;
};

/// For each step in plan.backward, the gradients on which no later step works.
std::vector<std::vector<std::size_t>> completion(const Plan& plan) {
  std::vector<std::vector<std::size_t>> complete(plan.backward.size());
  for (std::size_t k = 0; k < plan.gradients.size(); ++k) {
    const Tensor* gradient = plan.gradients[k];
    for (std::size_t i = plan.backward.size(); gradient != nullptr && i-- > 0;) {
      const Plan::BackwardStep& step = plan.backward[i];
      if (std::ranges::find(step.context.d_inputs, gradient) == step.context.d_inputs.end() &&
          std::ranges::find(step.sums, gradient, &Plan::Sum::total) == step.sums.end())
        continue;
      complete[i].push_back(k);
      break;
    }
  }
  return complete;
}

}  // namespace

ShardedSteps::ShardedSteps(const ShardOptions& options)
    : exchange_(options.exchange),
      range_(checked_range(options)),
      threads_(std::min(options.at_once, range_.count) * options.threads),
      workers_(std::min(options.at_once, range_.count), options.threads),
      statistics_(static_cast<std::size_t>(range_.count)),
      losses_(static_cast<std::size_t>(range_.count)) {}

ShardedPlan& ShardedSteps::plan_for(const Graph& graph, PlanRequest request, const BindVariables& bind_variables) {
  request.slice = true;
  require_requested(graph, request);
  const std::string key = plan_key(Delays(graph), request);
  if (const auto found = plans_.find(key); found != plans_.end()) return found->second;
  ShardedPlan plan;
  plan.precision = request.precision;
  for (int worker = 0; worker < workers_.count(); ++worker) {
    plan.plans.push_back(compile_plan(graph, request));
    bind_variables(*plan.plans.back());
  }
  plan.complete_after = completion(plan.first());
  plan.tree = std::make_unique<GradientTree>(range_.count, request.gradient_targets.size());
  plan.gradients.resize(request.gradient_targets.size());
  return plans_.emplace(key, std::move(plan)).first->second;
}

double ShardedSteps::compute(ShardedPlan& plan, const Graph& graph, const Feeds& feeds, const Sweep& how) {
  LeavesTogether together(exchange_);
  require_feeds(graph, feeds, range_.count);
  std::vector<Feeds> slices;
  for (int local = 0; local < range_.count; ++local) slices.push_back(slice_of(feeds, local));
  plan.tree->begin();
  workers_.run([&](int worker) { compute_slices(plan, slices, how, worker); });
  together.reached();
  combine_statistics();
  exchange_.combine(statistics_.front());
  exchange_.finish(threads_);
  store_observed(plan, how.backend);
  return statistics_.front().front().a / range_.total;
}

/// Each worker has its share of the slices, in order.
void ShardedSteps::compute_slices(ShardedPlan& plan, const std::vector<Feeds>& feeds, const Sweep& how, int worker) {
  const int first = range_.count * worker / workers_.count(), last = range_.count * (worker + 1) / workers_.count();
  Plan& own = *plan.plans[static_cast<std::size_t>(worker)];
  for (int local = first; local < last; ++local) {
    bind_feeds(own, feeds[static_cast<std::size_t>(local)], plan.precision);
    Sweep of_slice = how;
    of_slice.slice = range_.first + local;
    // A profile is for one thread.
    if (worker != 0) of_slice.profile = nullptr;
    of_slice.after_backward = [&, local](std::size_t step) {
      add_gradients(plan, own, step, local, local + 1 == last);
    };
    sweep(own, of_slice);
    const double loss = scalar_of(*own.fetches.front());
    losses_[static_cast<std::size_t>(local)] = loss;
    std::vector<ShardStatistic>& statistics = statistics_[static_cast<std::size_t>(local)];
    statistics.assign(1, {.kind = ShardStatistic::Kind::kSum, .a = loss});
    statistics.insert(statistics.end(), own.observed.begin(), own.observed.end());
  }
}

/// Every worker gives a tensor's part before it goes on to the next tensor. So a sum that needs all of them is complete
/// only when the sums before it are, and starts come in order, one at a time.
void ShardedSteps::add_gradients(ShardedPlan& plan, const Plan& of_worker, std::size_t step, int local, bool last) {
  for (const std::size_t k : plan.complete_after[step])
    if (std::optional<GradientHalves> halves = plan.tree->add(k, local, *of_worker.gradients[k], last)) {
      plan.gradients[k] = halves->left;
      exchange_.start(plan.gradients[k], halves->right);
    }
}

void ShardedSteps::combine_statistics() {
  const std::size_t count = statistics_.size();
  for (std::size_t distance = 1; distance < count; distance *= 2)
    for (std::size_t k = 0; k < count; k += 2 * distance) combine(statistics_[k], statistics_[k + distance]);
}

void ShardedSteps::store_observed(ShardedPlan& plan, Backend backend) const {
  Plan& first = plan.first();
  std::ranges::copy(std::span(statistics_.front()).subspan(1), first.observed.begin());
  for (Plan::Staged& staged : first.staged)
    if (staged.observed) staged.tensor.assign(*staged.value);
  for (const Plan::ForwardStep& step : first.forward)
    if (!step.context.observed.empty()) as<ObservesBatch>(*step.op)->store_observed(step.context, backend);
}

std::vector<int> ShardedSteps::non_finite_slices() const {
  std::vector<std::int64_t> bad(static_cast<std::size_t>(range_.total), 0);
  for (std::size_t local = 0; local < losses_.size(); ++local)
    bad[static_cast<std::size_t>(range_.first) + local] = std::isfinite(losses_[local]) ? 0 : 1;
  exchange_.add_up(bad);
  std::vector<int> slices;
  for (std::size_t k = 0; k < bad.size(); ++k)
    if (bad[k] != 0) slices.push_back(static_cast<int>(k));
  return slices;
}

}  // namespace miniqat
