#include "quantize/fake_quant.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "core/error.h"
#include "core/float_range.h"
#include "core/graph/node_check.h"
#include "core/graph/op_interfaces.h"
#include "core/graph/source_ops.h"
#include "core/kernels/scratch.h"
#include "core/text/exact.h"
#include "layers/chain/chain_fusion.h"
#include "quantize/kernels/fake_quant_kernels.h"
#include "quantize/range_gradient.h"
#include "quantize/range_update.h"
#include "quantize/reference/fake_quant.h"

namespace miniqat::quantize {

class FakeQuantOp final : public OpOf<FakeQuant>,
                          public layers::ChainQuantizer,
                          public SavesForBackward,
                          public KeepsState,
                          public ChangesLater,
                          public ObservesBatch,
                          public layers::ChainMember {
 public:
  using OpOf::OpOf;
  bool writes_default(std::string_view attribute) const override {
    return attribute != "power_of_two" && !attribute.starts_with("dampening");
  }
  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  OpTraits traits() const override;
  std::vector<TensorSpec> saved(std::span<const TensorSpec> inputs) const override;
  std::vector<OpState> state() const override;
  std::vector<std::int64_t> delays() const override;
  std::size_t observations(std::span<const TensorSpec> inputs, const Phase& phase) const override;
  void store_observed(const ForwardContext& context, Backend backend) const override;
  void forward(const ForwardContext& context) const override;
  void backward(const BackwardContext& context) const override;
  void reference_forward(const ForwardContext& context) const override;
  void reference_backward(const BackwardContext& context) const override;

  /// As the last part of a chain, with one range for the tensor.
  std::optional<layers::ChainRole> chain_role() const override;
  bool quantizes(const Phase& phase) const override { return attributes_.quantizes(phase.quantization_step); }
  bool observes_range() const override { return attributes_.observes_range(); }
  bool trains_range() const override { return attributes_.is_training && traits_of(attributes_.range).learned; }
  std::pair<float, float> gradients_of_range(const layers::ChainRange& range,
                                             const layers::RoundingSums& sums) const override;
  layers::ChainGrid grid(const layers::ChainRange& range, const layers::ObservedRange* observed) const override;
  void quantize_piece(const layers::ChainGrid& grid, const float* x, float* y, std::int64_t n) const override;
  bool fits_bytes() const override { return attributes_.bits <= 8; }

 private:
  /// Dampening does.
  bool adds_to_gradient() const { return attributes_.is_training && attributes_.dampening > 0; }
};

namespace {

/// Whether this run's tensor sets this run's range.
bool observes(const FakeQuantAttributes& attributes, const ForwardContext& context) {
  return context.training && attributes.observes_range() && context.input(0).elements() > 0;
}

// Ranges and grids per channel lie in the working memory of a run (`scope`).

template <class T>
std::span<Range<T>> ranges_in(const Tensor& min, const Tensor& max, ScratchScope& scope) {
  const std::span<Range<T>> ranges = scope.take<Range<T>>(static_cast<std::size_t>(min.elements()));
  for (std::size_t c = 0; c < ranges.size(); ++c) ranges[c] = {min.data<T>()[c], max.data<T>()[c]};
  return ranges;
}

/// The count of observations, or null for ranges that do not have one.
template <class T>
T* num_updates(const FakeQuantAttributes& attributes, const ForwardContext& context) {
  return traits_of(attributes.range).counts_steps ? context.state[0]->data<T>() : nullptr;
}

/// Makes the ranges of this step of what was observed, and stages them (as updates) with the count of observations
/// (context.state).
void store(const FakeQuantAttributes& attributes, const ForwardContext& context, Observation<float>& observation) {
  update_ranges(attributes, observation,
                {.min = context.update_of(1)->values<float>(),
                 .max = context.update_of(2)->values<float>(),
                 .num_updates = num_updates<float>(attributes, context)});
}

/// The ranges of this step, stored.
std::span<Range<float>> learn(const FakeQuantAttributes& attributes, const ForwardContext& context,
                              Observation<float> observation) {
  leave(observation, context.observed);
  store(attributes, context, observation);
  return observation.ranges;
}

std::span<const Affine<float>> grids_of(std::span<const Range<float>> ranges, const FakeQuantAttributes& attributes,
                                        ScratchScope& scope) {
  const std::span<Affine<float>> grids = scope.take<Affine<float>>(ranges.size());
  for (std::size_t c = 0; c < ranges.size(); ++c) grids[c] = grid_of(ranges[c], attributes.grid_options());
  return grids;
}

template <class T>
std::span<const T> elements(const Tensor& tensor) {
  return tensor.values<T>();
}

/// What x shows.
template <class T>
Observation<T> reference_observe(const ForwardContext& context, ScratchScope& scope) {
  const auto channels = static_cast<std::size_t>(context.input(1).elements());
  return reference::observe(elements<T>(context.input(0)), scope.take<Range<T>>(channels));
}

/// As store().
template <class T>
void reference_store(const FakeQuantAttributes& attributes, const ForwardContext& context,
                     Observation<T>& observation) {
  reference::learn_ranges({attributes.range, attributes.ema_decay, attributes.grid_options()}, observation,
                          context.update_of(1)->data<T>(), context.update_of(2)->data<T>(),
                          num_updates<T>(attributes, context));
}

/// The ranges of this step in the reference backend, stored likewise.
template <class T>
std::span<const Range<T>> reference_ranges(const FakeQuantAttributes& attributes, const ForwardContext& context,
                                           ScratchScope& scope) {
  if (!observes(attributes, context)) return ranges_in<T>(context.input(1), context.input(2), scope);
  Observation<T> observation = reference_observe<T>(context, scope);
  leave(observation, context.observed);
  reference_store(attributes, context, observation);
  return observation.ranges;
}

/// The ranges that the reference forward used: it saves nothing, so they are found again.
template <class T>
std::span<const Range<T>> reference_ranges_used(const FakeQuantAttributes& attributes, const ForwardContext& context,
                                                ScratchScope& scope) {
  if (!observes(attributes, context)) return ranges_in<T>(context.input(1), context.input(2), scope);
  Observation<T> observation = reference_observe<T>(context, scope);
  // Nothing was stored then.
  if (!reference::widen_observed(observation, attributes.grid_options())) return observation.ranges;
  return ranges_in<T>(*context.update_of(1), *context.update_of(2), scope);
}

template <class T>
std::span<const Affine<T>> reference_grids(std::span<const Range<T>> ranges, const FakeQuantAttributes& attributes,
                                           ScratchScope& scope) {
  const std::span<Affine<T>> grids = scope.take<Affine<T>>(ranges.size());
  for (std::size_t c = 0; c < ranges.size(); ++c) grids[c] = reference::grid(ranges[c], attributes.grid_options());
  return grids;
}

/// Counts the steps in which dampening acts.
template <class T>
void count_dampened(const FakeQuantAttributes& attributes, const ForwardContext& context) {
  if (attributes.dampening > 0 && context.training && attributes.quantizes(context.quantization_step))
    ++*context.state.back()->template data<T>();
}

bool dampens(const FakeQuantAttributes& attributes, const ForwardContext& forward) {
  return attributes.dampening > 0 && attributes.is_training && forward.training;
}

/// The steps in which dampening has acted, with this one.
template <class T>
std::int64_t dampened_steps(const ForwardContext& forward) {
  return static_cast<std::int64_t>(*forward.state.back()->template data<T>());
}

template <class T>
double reference_dampening(const FakeQuantAttributes& attributes, const ForwardContext& forward) {
  return reference::dampening_at(attributes.dampening, attributes.dampening_steps, dampened_steps<T>(forward));
}

template <class T>
T* data_or_null(Tensor* tensor) {
  return tensor ? tensor->data<T>() : nullptr;
}

/// d_min and d_max of a quantizer that does not quantize.
template <class T>
void clear_range_gradients(const BackwardContext& context) {
  for (int i : {1, 2})
    if (context.d_inputs[i]) std::ranges::fill(context.d_inputs[i]->values<T>(), T(0));
}

void require_range_shape(const TensorSpec& x, const TensorSpec& range, std::string_view role, bool per_channel) {
  const Shape& shape = range.shape;
  if (!per_channel) {
    if (shape.rank() != 0) fail(role, " of one range per tensor must be a scalar [], is ", shape, "; x ", x.shape);
    return;
  }
  const bool fits = (shape.rank() == 1 || shape.rank() == 2) && shape.rank() <= x.shape.rank() &&
                    std::ranges::equal(shape.extents(), x.shape.extents().last(shape.rank()));
  if (!fits) fail(role, " must have the shape of x's last axis, or last two, is ", shape, "; x ", x.shape);
}

/// As above, in a chain.
Range<float> learn(const FakeQuantAttributes& attributes, const layers::ChainRange& range,
                   const layers::ObservedRange& observed) {
  Range<float> of_step = {observed.least, observed.largest};
  Observation<float> observation{std::span(&of_step, 1), observed.has_nan};
  update_ranges(attributes, observation,
                {.min = {range.new_min, 1}, .max = {range.new_max, 1}, .num_updates = range.state});
  return of_step;
}

}  // namespace

std::shared_ptr<Op> FakeQuant::make(const Attributes& attributes) { return std::make_shared<FakeQuantOp>(attributes); }

std::vector<TensorSpec> FakeQuantOp::infer(std::span<const TensorSpec> inputs) const {
  if (attributes_.bits < 2 || attributes_.bits > 16) fail("bits must be 2..16, is ", attributes_.bits);
  if (!(attributes_.ema_decay >= 0 && attributes_.ema_decay < 1))
    fail("ema_decay must be in [0, 1), is ", exact(attributes_.ema_decay));
  if (attributes_.delay < 0) fail("delay must not be negative, is ", attributes_.delay);
  if (!(attributes_.dampening >= 0 && std::isfinite(attributes_.dampening)))
    fail("dampening must be at least 0 and finite, is ", attributes_.dampening);
  if (attributes_.dampening_steps < 0) fail("dampening_steps must not be negative, is ", attributes_.dampening_steps);
  require_inputs(inputs, 3);
  require_float(inputs[0], "x");
  require_float(inputs[1], "min");
  require_float(inputs[2], "max");
  require_range_shape(inputs[0], inputs[1], "min", attributes_.per_channel);
  require_range_shape(inputs[0], inputs[2], "max", attributes_.per_channel);
  if (inputs[1].shape != inputs[2].shape)
    fail("min and max must have the same shape: min ", inputs[1].shape, ", max ", inputs[2].shape);
  return {inputs[0]};
}

OpTraits FakeQuantOp::traits() const {
  OpTraits traits;
  traits.forward_in_place = true;
  traits.backward_in_place = true;
  if (!attributes_.observes_range()) {
    // Here backward sums up what lies below and above the range, for which a mask of one bit is not enough.
    traits.backward_inputs = {0, 1, 2};
    return traits;
  }
  traits.no_gradient = {1, 2};
  traits.updated_inputs = {1, 2};
  traits.updates_start_anew = true;
  if (adds_to_gradient()) traits.backward_inputs = {0, 1, 2};
  return traits;
}

std::vector<TensorSpec> FakeQuantOp::saved(std::span<const TensorSpec> inputs) const {
  if (!attributes_.observes_range() || adds_to_gradient()) return {};
  return {{Shape{mask_words(inputs[0].shape.elements())}, DType::kInt32}};
}

std::vector<OpState> FakeQuantOp::state() const {
  // Evaluation graphs keep it, too, so that a checkpoint fits both.
  std::vector<OpState> states;
  if (traits_of(attributes_.range).counts_steps) states.push_back({"num_updates", Shape{}, 0});
  if (attributes_.dampening > 0) states.push_back({"num_dampened", Shape{}, 0});
  return states;
}

std::vector<std::int64_t> FakeQuantOp::delays() const {
  return attributes_.is_training ? std::vector{attributes_.delay} : std::vector<std::int64_t>{};
}

std::size_t FakeQuantOp::observations(std::span<const TensorSpec> inputs, const Phase& phase) const {
  const bool observes = phase.training && attributes_.observes_range() && inputs[0].shape.elements() > 0;
  return observes ? static_cast<std::size_t>(inputs[1].shape.elements()) : 0;
}

void FakeQuantOp::store_observed(const ForwardContext& context, Backend backend) const {
  with_float_type(*context.update_of(1), [&]<class T>(T) {
    count_dampened<T>(attributes_, context);
    ScratchScope scope;
    Observation<T> observation{scope.take<Range<T>>(context.observed.size())};
    take(context.observed, observation);
    if (backend == Backend::kReference) return reference_store(attributes_, context, observation);
    if constexpr (std::is_same_v<T, float>) store(attributes_, context, observation);
  });
}

void FakeQuantOp::forward(const ForwardContext& context) const {
  const Tensor& x = context.input(0);
  float* y = context.output(0).data<float>();
  const std::int64_t channels = context.input(1).elements();
  count_dampened<float>(attributes_, context);
  ScratchScope scope;
  const std::span<const Range<float>> ranges =
      observes(attributes_, context) ? learn(attributes_, context, observe(elements<float>(x), channels, scope))
                                     : ranges_in<float>(context.input(1), context.input(2), scope);
  if (!quantizes(context)) return copy_floats(x.data<float>(), y, x.elements());
  std::uint32_t* mask = nullptr;
  if (!context.saved.empty()) mask = reinterpret_cast<std::uint32_t*>(context.saved[0]->data<std::int32_t>());
  const ChannelGrids grids = channel_grids(grids_of(ranges, attributes_, scope), scope);
  fake_quant_forward(x.data<float>(), y, x.elements(), grids, mask);
}

void FakeQuantOp::backward(const BackwardContext& context) const {
  const ForwardContext& forward = *context.forward;
  const Tensor& dy = *context.d_outputs[0];
  float* dx = data_or_null<float>(context.d_inputs[0]);
  if (!quantizes(forward)) {
    if (dx) copy_floats(dy.data<float>(), dx, dy.elements());
    return clear_range_gradients<float>(context);
  }
  const auto pull = static_cast<float>(
      dampens(attributes_, forward) ? 2 * attributes_.dampening_in(dampened_steps<float>(forward)) : 0);
  if (attributes_.observes_range() && !adds_to_gradient()) {
    const auto* mask = reinterpret_cast<const std::uint32_t*>(forward.saved[0]->data<std::int32_t>());
    if (dx) fake_quant_backward(dy.data<float>(), dx, dy.elements(), mask);
    return;
  }
  ScratchScope scope;
  const std::span<const Range<float>> ranges =
      observes(attributes_, forward) ? ranges_in<float>(*forward.update_of(1), *forward.update_of(2), scope)
                                     : ranges_in<float>(forward.input(1), forward.input(2), scope);
  const ChannelGrids grids = channel_grids(grids_of(ranges, attributes_, scope), scope);
  float* d_min = data_or_null<float>(context.d_inputs[1]);
  float* d_max = data_or_null<float>(context.d_inputs[2]);
  const std::span<RangeSums> sums = scope.take<RangeSums>(d_min || d_max ? ranges.size() : 0);
  fake_quant_backward(forward.input(0).data<float>(), dy.data<float>(), dy.elements(), grids, dx, sums,
                      traits_of(attributes_.range).learned, pull);
  range_gradients(attributes_, ranges, sums, d_min, d_max);
}

void FakeQuantOp::reference_forward(const ForwardContext& context) const {
  with_float_type(context.input(0), [&]<class T>(T) {
    const std::span<const T> x = elements<T>(context.input(0));
    T* y = context.output(0).data<T>();
    count_dampened<T>(attributes_, context);
    ScratchScope scope;
    const std::span<const Range<T>> ranges = reference_ranges<T>(attributes_, context, scope);
    if (!quantizes(context)) {
      std::ranges::copy(x, y);
      return;
    }
    reference::fake_quant_forward<T>(x, reference_grids<T>(ranges, attributes_, scope), y);
  });
}

void FakeQuantOp::reference_backward(const BackwardContext& context) const {
  const ForwardContext& forward = *context.forward;
  const Tensor& dy = *context.d_outputs[0];
  with_float_type(dy, [&]<class T>(T) {
    T* dx = data_or_null<T>(context.d_inputs[0]);
    if (!quantizes(forward)) {
      if (dx) std::ranges::copy(elements<T>(dy), dx);
      return clear_range_gradients<T>(context);
    }
    ScratchScope scope;
    const std::span<const Range<T>> ranges = reference_ranges_used<T>(attributes_, forward, scope);
    const std::span<const Affine<T>> grids = reference_grids<T>(ranges, attributes_, scope);
    T* d_min = data_or_null<T>(context.d_inputs[1]);
    T* d_max = data_or_null<T>(context.d_inputs[2]);
    const std::span<const T> x = elements<T>(forward.input(0));
    reference::fake_quant_backward<T>(x, dy.data<T>(), grids, dx, d_min, d_max);
    if (traits_of(attributes_.range).learned)
      reference::add_learned_gradients<T>(x, dy.data<T>(), grids, attributes_.symmetric, d_min, d_max);
    if (traits_of(attributes_.range).learned && attributes_.power_of_two)
      reference::pass_to_stored_ends<T>(ranges, grids, d_min, d_max);
    if (dx && dampens(attributes_, forward))
      reference::add_dampening<T>(x, grids, 2 * reference_dampening<T>(attributes_, forward), dx);
  });
}

std::optional<layers::ChainRole> FakeQuantOp::chain_role() const {
  // No chain adds something of its own to the gradient.
  if (attributes_.per_channel || adds_to_gradient()) return std::nullopt;
  return layers::chain_role::Rounding{this};
}

layers::ChainGrid FakeQuantOp::grid(const layers::ChainRange& range, const layers::ObservedRange* observed) const {
  const Range<float> used =
      observed != nullptr ? learn(attributes_, range, *observed) : Range<float>{range.min, range.max};
  const Affine<float> grid = grid_of(used, attributes_.grid_options());
  return {.lowest = grid.empty() ? -kInfinity : grid.nudged_min,
          .highest = grid.empty() ? kInfinity : grid.nudged_max,
          .affine = grid};
}

std::pair<float, float> FakeQuantOp::gradients_of_range(const layers::ChainRange& range,
                                                        const layers::RoundingSums& sums) const {
  const Range<float> used = {range.min, range.max};
  const double scale = grid_of(used, attributes_.grid_options()).scale;
  const RangeSums of_range = {.below = sums.below, .above = sums.above, .inside = sums.inside * scale};
  std::pair<float, float> gradients;
  range_gradients(attributes_, {&used, 1}, {&of_range, 1}, &gradients.first, &gradients.second);
  return gradients;
}

void FakeQuantOp::quantize_piece(const layers::ChainGrid& g, const float* x, float* y, std::int64_t n) const {
  fake_quant_piece(x, y, n, g.affine);
}

Output fake_quant(Graph& graph, const std::string& name, Output x, FakeQuantAttributes attributes, InitialRange initial,
                  int channel_axes) {
  if (channel_axes < 0 || channel_axes > std::min(2, x.shape().rank()))
    fail("[FakeQuant \"", name, "\"] channel_axes must be 0, 1 or 2 of x's axes, is ", channel_axes, "; x ", x.shape());
  attributes.per_channel = channel_axes > 0;
  const Shape shape(x.shape().extents().last(channel_axes));
  const auto end = [&](const char* which, double value) {
    return graph
        .add(concat(name, which),
             Variable::make({.shape = shape.to_vector(),
                             .trainable = traits_of(attributes.range).learned,
                             .initializer = Initializer::constant(value),
                             .update = traits_of(attributes.range).learned ? VariableUpdateKind::kMultiplicative
                                                                           : VariableUpdateKind::kAdditive}),
             {})
        .output();
  };
  const Output min = end("/min", initial.min);
  const Output max = end("/max", initial.max);
  return graph.add(name, FakeQuant::make(attributes), {x, min, max}).output();
}

}  // namespace miniqat::quantize
