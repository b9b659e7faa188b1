#include "quantize/fake_quant.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <type_traits>

#include "core/graph/op.h"
#include "core/graph/op_interfaces.h"
#include "core/graph/source_ops.h"
#include "core/kernels/packed.h"
#include "core/kernels/scratch.h"
#include "core/text/error.h"
#include "layers/chain/chain_fusion.h"
#include "quantize/fake_quant_in_chain.h"
#include "quantize/kernels/fake_quant_kernels.h"
#include "quantize/range_training.h"
#include "quantize/reference/fake_quant.h"

namespace miniqat::quantize {
namespace {

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

template <class T>
T* data_or_null(Tensor* tensor) {
  return tensor ? tensor->data<T>() : nullptr;
}

// Ranges and grids per channel lie in the working memory of a run (`scope`).

template <class T>
std::span<const Range<T>> ranges_in(const Tensor& min, const Tensor& max, ScratchScope& scope) {
  const std::span<Range<T>> ranges = scope.take<Range<T>>(static_cast<std::size_t>(min.elements()));
  for (std::size_t c = 0; c < ranges.size(); ++c) ranges[c] = {min.data<T>()[c], max.data<T>()[c]};
  return ranges;
}

/// Leaves what a slice shows for the other slices of its batch: one statistic a channel. A NaN anywhere makes all of
/// them NaN. Nothing to do where `statistics` is empty.
template <class T>
void leave(const Observation<T>& observation, std::span<ShardStatistic> statistics) {
  for (std::size_t c = 0; c < statistics.size(); ++c) {
    const Range<T> range = observation.ranges[c];
    statistics[c] = {.kind = ShardStatistic::Kind::kRange,
                     .a = observation.has_nan ? NAN : double{range.min},
                     .b = observation.has_nan ? NAN : double{range.max}};
  }
}

/// What the slices of a batch have left, put together.
template <class T>
Observation<T> taken(std::span<const ShardStatistic> statistics, ScratchScope& scope) {
  Observation<T> observation{scope.take<Range<T>>(statistics.size())};
  for (std::size_t c = 0; c < statistics.size(); ++c) {
    observation.ranges[c] = {static_cast<T>(statistics[c].a), static_cast<T>(statistics[c].b)};
    observation.has_nan = observation.has_nan || std::isnan(statistics[c].a);
  }
  return observation;
}

/// d_min and d_max of a quantizer that does not quantize.
template <class T>
void clear_range_gradients(const BackwardContext& context) {
  for (int i : {1, 2})
    if (context.d_inputs[i]) std::ranges::fill(context.d_inputs[i]->values<T>(), T(0));
}

// The arithmetic of ranges in each backend: their observation, what a step learns of it, their grids.

struct FastRanges {
  using Number = float;
  static constexpr auto observe = quantize::observe;
  static constexpr auto learn = update_ranges;
  static constexpr auto grid = grid_of<float>;
};

template <class T>
struct ReferenceRanges {
  using Number = T;
  static Observation<T> observe(std::span<const T> x, std::int64_t channels, ScratchScope& scope) {
    return reference::observe(x, scope.take<Range<T>>(static_cast<std::size_t>(channels)));
  }
  static void learn(const FakeQuantAttributes& attributes, Observation<T>& observation, const StoredRange<T>& stored) {
    reference::learn_ranges({attributes.range, attributes.ema_decay, attributes.grid_options()}, observation,
                            stored.min.data(), stored.max.data(), stored.num_updates);
  }
  static constexpr auto grid = reference::grid<T>;
};

/// A run takes its ranges from x (an observing kind, in training) or as min and max are; then it rounds x to their
/// grids, unless it is too early for that.
class FakeQuantOp final : public OpOf<FakeQuant>, public ObservesBatch, public PacksOutput, public layers::ChainMember {
 public:
  using OpOf::OpOf;

  bool writes_default(std::string_view attribute) const override {
    return attribute != "power_of_two" && !attribute.starts_with("dampening");
  }

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override {
    const FakeQuantAttributes& a = attributes_;
    if (a.bits < 2 || a.bits > 16) fail("bits must be 2..16, is ", a.bits);
    if (!(a.ema_decay >= 0 && a.ema_decay < 1)) fail("ema_decay must be in [0, 1), is ", exact(a.ema_decay));
    if (a.delay < 0) fail("delay must not be negative, is ", a.delay);
    if (!(a.dampening >= 0 && std::isfinite(a.dampening)))
      fail("dampening must be at least 0 and finite, is ", a.dampening);
    if (a.dampening_steps < 0) fail("dampening_steps must not be negative, is ", a.dampening_steps);
    require_inputs(inputs, 3);
    require_float(inputs[0], "x");
    require_float(inputs[1], "min");
    require_float(inputs[2], "max");
    require_range_shape(inputs[0], inputs[1], "min", a.per_channel);
    require_range_shape(inputs[0], inputs[2], "max", a.per_channel);
    if (inputs[1].shape != inputs[2].shape)
      fail("min and max must have the same shape: min ", inputs[1].shape, ", max ", inputs[2].shape);
    return {inputs[0]};
  }

  OpTraits traits() const override {
    OpTraits traits{.forward_in_place = true, .backward_in_place = true};
    if (attributes_.observes_range()) {
      traits.no_gradient = {1, 2};
      traits.updated_inputs = {1, 2};
      traits.updates_start_anew = true;
    }
    if (!backward_reads_mask()) traits.backward_inputs = {0, 1, 2};
    // Evaluation graphs keep it, too, so that a checkpoint fits both.
    if (traits_of(attributes_.range).counts_steps) traits.state.push_back({"num_updates", Shape{}, 0});
    if (attributes_.dampening > 0) traits.state.push_back({"num_dampened", Shape{}, 0});
    if (attributes_.is_training) traits.delays = {attributes_.delay};
    return traits;
  }

  /// One bit an element: where the gradient passes.
  std::vector<TensorSpec> saved(std::span<const TensorSpec> inputs) const override {
    if (!backward_reads_mask()) return {};
    return {{Shape{mask_words(inputs[0].shape.elements())}, DType::kInt32}};
  }

  void forward(const ForwardContext& context) const override {
    const Tensor& x = context.input(0);
    float* y = context.output(0).data<float>();
    count_dampened<float>(context);
    ScratchScope scope;
    const std::span<const Range<float>> ranges = ranges_of_step<FastRanges>(context, scope);
    if (!quantizes(context)) return copy_floats(x.data<float>(), y, x.elements());
    std::uint32_t* mask = nullptr;
    if (!context.saved.empty()) mask = reinterpret_cast<std::uint32_t*>(context.saved[0]->data<std::int32_t>());
    const std::span<const Affine<float>> grids = grids_of<FastRanges>(ranges, scope);
    fake_quant_forward(x.data<float>(), y, x.elements(), channel_grids(grids, scope), mask);
    if (context.packed != nullptr) keep_packed(context, grids);
  }

  void backward(const BackwardContext& context) const override {
    const ForwardContext& forward = *context.forward;
    const Tensor& dy = *context.d_outputs[0];
    float* dx = data_or_null<float>(context.d_inputs[0]);
    if (!quantizes(forward)) {
      if (dx) copy_floats(dy.data<float>(), dx, dy.elements());
      return clear_range_gradients<float>(context);
    }
    if (backward_reads_mask()) {
      const auto* mask = reinterpret_cast<const std::uint32_t*>(forward.saved[0]->data<std::int32_t>());
      if (dx) fake_quant_backward(dy.data<float>(), dx, dy.elements(), mask);
      return;
    }
    ScratchScope scope;
    const std::span<const Range<float>> ranges = stored_ranges<float>(forward, scope);
    float* d_min = data_or_null<float>(context.d_inputs[1]);
    float* d_max = data_or_null<float>(context.d_inputs[2]);
    const std::span<RangeSums> sums = scope.take<RangeSums>(d_min || d_max ? ranges.size() : 0);
    const double pull = dampens(forward) ? 2 * attributes_.dampening_in(dampened_steps<float>(forward)) : 0;
    fake_quant_backward(forward.input(0).data<float>(), dy.data<float>(), dy.elements(),
                        channel_grids(grids_of<FastRanges>(ranges, scope), scope), dx, sums, learns(),
                        static_cast<float>(pull));
    range_gradients(attributes_, ranges, sums, d_min, d_max);
  }

  void reference_forward(const ForwardContext& context) const override {
    with_float_type(context.input(0), [&]<class T>(T) {
      const std::span<const T> x = context.input(0).values<T>();
      T* y = context.output(0).data<T>();
      count_dampened<T>(context);
      ScratchScope scope;
      const std::span<const Range<T>> ranges = ranges_of_step<ReferenceRanges<T>>(context, scope);
      if (!quantizes(context)) {
        std::ranges::copy(x, y);
        return;
      }
      reference::fake_quant_forward<T>(x, grids_of<ReferenceRanges<T>>(ranges, scope), y);
    });
  }

  void reference_backward(const BackwardContext& context) const override {
    const ForwardContext& forward = *context.forward;
    with_float_type(*context.d_outputs[0], [&]<class T>(T) {
      const std::span<const T> dy = context.d_outputs[0]->values<T>();
      T* dx = data_or_null<T>(context.d_inputs[0]);
      if (!quantizes(forward)) {
        if (dx) std::ranges::copy(dy, dx);
        return clear_range_gradients<T>(context);
      }
      ScratchScope scope;
      const std::span<const Range<T>> ranges = reference_ranges_used<T>(forward, scope);
      const std::span<const Affine<T>> grids = grids_of<ReferenceRanges<T>>(ranges, scope);
      T* d_min = data_or_null<T>(context.d_inputs[1]);
      T* d_max = data_or_null<T>(context.d_inputs[2]);
      const std::span<const T> x = forward.input(0).values<T>();
      reference::fake_quant_backward<T>(x, dy.data(), grids, dx, d_min, d_max);
      if (learns()) {
        reference::add_learned_gradients<T>(x, dy.data(), grids, attributes_.symmetric, d_min, d_max);
        if (attributes_.power_of_two) reference::pass_to_stored_ends<T>(ranges, grids, d_min, d_max);
      }
      if (dx && dampens(forward)) {
        const double dampening =
            reference::dampening_at(attributes_.dampening, attributes_.dampening_steps, dampened_steps<T>(forward));
        reference::add_dampening<T>(x, grids, 2 * dampening, dx);
      }
    });
  }

  std::size_t observations(std::span<const TensorSpec> inputs, const Phase& phase) const override {
    const bool observes = phase.training && attributes_.observes_range() && inputs[0].shape.elements() > 0;
    return observes ? static_cast<std::size_t>(inputs[1].shape.elements()) : 0;
  }

  void store_observed(const ForwardContext& context, Backend backend) const override {
    with_float_type(*context.update_of(1), [&]<class T>(T) {
      count_dampened<T>(context);
      ScratchScope scope;
      Observation<T> observation = taken<T>(context.observed, scope);
      if (backend == Backend::kReference) return store<ReferenceRanges<T>>(context, observation);
      if constexpr (std::is_same_v<T, float>) store<FastRanges>(context, observation);
    });
  }

  std::optional<PackedForm> packed_output(std::span<const TensorSpec> inputs, const Phase& phase) const override {
    if (!quantizes(phase) || attributes_.bits > 8) return std::nullopt;
    return packed_form(inputs[0].shape.elements(), inputs[1].shape.elements());
  }

  std::optional<layers::ChainRole> chain_role() const override {
    // A chain has one range for its tensor, and adds nothing of its own to the gradient.
    if (attributes_.per_channel || adds_to_gradient()) return std::nullopt;
    return layers::chain_role::Rounding{chain_quantizer(attributes_)};
  }

 private:
  bool quantizes(const Phase& phase) const { return attributes_.quantizes(phase.quantization_step); }
  bool learns() const { return traits_of(attributes_.range).learned; }
  /// Whether this run's tensor sets this run's range.
  bool observes(const ForwardContext& context) const {
    return context.training && attributes_.observes_range() && context.input(0).elements() > 0;
  }
  /// Whether dampening adds to the gradient of x.
  bool adds_to_gradient() const { return attributes_.is_training && attributes_.dampening > 0; }
  bool dampens(const Phase& phase) const { return adds_to_gradient() && phase.training; }
  /// Whether backward needs no more than saved(): where neither the range has a gradient nor dampening adds one. Else
  /// it sums up what lies below and above the range, or looks at the distance from the grid.
  bool backward_reads_mask() const { return attributes_.observes_range() && !adds_to_gradient(); }

  /// Counts the steps in which dampening acts.
  template <class T>
  void count_dampened(const ForwardContext& context) const {
    if (attributes_.dampening > 0 && context.training && quantizes(context))
      ++*context.state.back()->template data<T>();
  }
  /// The number of steps in which dampening has acted, with this one.
  template <class T>
  std::int64_t dampened_steps(const ForwardContext& forward) const {
    return static_cast<std::int64_t>(*forward.state.back()->template data<T>());
  }

  /// The ranges of this step: observed and stored, or as they came.
  template <class Ranges, class T = typename Ranges::Number>
  std::span<const Range<T>> ranges_of_step(const ForwardContext& context, ScratchScope& scope) const {
    if (!observes(context)) return ranges_in<T>(context.input(1), context.input(2), scope);
    Observation<T> observation = Ranges::observe(context.input(0).values<T>(), context.input(1).elements(), scope);
    leave(observation, context.observed);
    store<Ranges>(context, observation);
    return observation.ranges;
  }

  /// Makes the ranges of this step of what was observed, and stages them (as updates) with the count of observations
  /// (context.state), if their kind has one.
  template <class Ranges, class T = typename Ranges::Number>
  void store(const ForwardContext& context, Observation<T>& observation) const {
    const bool counts = traits_of(attributes_.range).counts_steps;
    Ranges::learn(attributes_, observation,
                  {.min = context.update_of(1)->values<T>(),
                   .max = context.update_of(2)->values<T>(),
                   .num_updates = counts ? context.state[0]->data<T>() : nullptr});
  }

  template <class Ranges, class T = typename Ranges::Number>
  std::span<const Affine<T>> grids_of(std::span<const Range<T>> ranges, ScratchScope& scope) const {
    const std::span<Affine<T>> grids = scope.take<Affine<T>>(ranges.size());
    for (std::size_t c = 0; c < ranges.size(); ++c) grids[c] = Ranges::grid(ranges[c], attributes_.grid_options());
    return grids;
  }

  /// For backward: the ranges that the forward run stored, or took as they came.
  template <class T>
  std::span<const Range<T>> stored_ranges(const ForwardContext& forward, ScratchScope& scope) const {
    return observes(forward) ? ranges_in<T>(*forward.update_of(1), *forward.update_of(2), scope)
                             : ranges_in<T>(forward.input(1), forward.input(2), scope);
  }

  /// The reference saves no mask, so it looks again whether the forward run had a NaN or an infinity: nothing was
  /// stored then, and the ranges were NaN.
  template <class T>
  std::span<const Range<T>> reference_ranges_used(const ForwardContext& forward, ScratchScope& scope) const {
    if (observes(forward)) {
      Observation<T> observation =
          ReferenceRanges<T>::observe(forward.input(0).values<T>(), forward.input(1).elements(), scope);
      if (!reference::widen_observed(observation, attributes_.grid_options())) return observation.ranges;
    }
    return stored_ranges<T>(forward, scope);
  }

  PackedForm packed_form(std::int64_t elements, std::int64_t grids) const {
    PackedForm form = quantize::packed_form(attributes_.grid_options());
    form.elements = elements, form.grids = grids, form.needs_tensor = true;
    return form;
  }

  void keep_packed(const ForwardContext& context, std::span<const Affine<float>> grids) const {
    const Tensor& y = context.output(0);
    const PackedForm form = packed_form(y.elements(), std::ssize(grids));
    std::ranges::transform(grids, packed_grids(form, *context.packed).begin(), [](const Affine<float>& grid) {
      return CodeGrid{grid.scale, grid.zero_point};
    });
    pack(form, y.data<float>(), *context.packed);
  }
};

}  // namespace

std::shared_ptr<Op> FakeQuant::make(const Attributes& attributes) { return std::make_shared<FakeQuantOp>(attributes); }

double FakeQuantAttributes::dampening_in(std::int64_t step) const {
  if (step >= dampening_steps) return dampening;
  return dampening *
         (1 - std::cos(std::numbers::pi * static_cast<double>(step) / static_cast<double>(dampening_steps))) / 2;
}

Output fake_quant(Graph& graph, const std::string& name, Output x, FakeQuantAttributes attributes, InitialRange initial,
                  int channel_axes) {
  if (channel_axes < 0 || channel_axes > std::min(2, x.shape().rank()))
    fail("[FakeQuant \"", name, "\"] channel_axes must be 0, 1 or 2 of x's axes, is ", channel_axes, "; x ", x.shape());
  attributes.per_channel = channel_axes > 0;
  const Shape shape(x.shape().extents().last(channel_axes));
  const bool learned = traits_of(attributes.range).learned;
  const auto end = [&](const char* which, double value) {
    return graph
        .add(concat(name, which),
             Variable::make({.shape = shape.to_vector(),
                             .trainable = learned,
                             .initializer = Initializer::constant(value),
                             .update = learned ? VariableUpdateKind::kMultiplicative : VariableUpdateKind::kAdditive}),
             {})
        .output();
  };
  const Output min = end("/min", initial.min);
  const Output max = end("/max", initial.max);
  return graph.add(name, FakeQuant::make(attributes), {x, min, max}).output();
}

}  // namespace miniqat::quantize
