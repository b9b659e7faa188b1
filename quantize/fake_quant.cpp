#include "quantize/fake_quant.h"

#include <algorithm>
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
#include "quantize/step_ranges.h"

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

/// d_min and d_max of a quantizer that does not quantize.
template <class T>
void clear_range_gradients(const BackwardContext& context) {
  for (int i : {1, 2})
    if (context.d_inputs[i]) std::ranges::fill(context.d_inputs[i]->values<T>(), T(0));
}

/// A run takes its ranges from x (an observing kind, in training) or as min and max are (step_ranges.h); then it rounds
/// x to their grids, unless it is too early for that.
class FakeQuantOp final : public OpOf<FakeQuant>, public ObservesBatch, public PacksOutput, public layers::ChainMember {
 public:
  using OpOf::OpOf;

  bool writes_default(std::string_view attribute) const override {
    return attribute != "power_of_two" && !attribute.starts_with("dampening");
  }

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override {
    attributes_.check();
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
    const std::span<const Range<float>> ranges = ranges_of_step<FastRanges>(attributes_, context, scope);
    if (!quantizes(context)) return copy_floats(x.data<float>(), y, x.elements());
    const std::span<const Affine<float>> grids = grids_of<FastRanges>(attributes_, ranges, scope);
    std::uint32_t* mask = nullptr;
    if (!context.saved.empty()) mask = reinterpret_cast<std::uint32_t*>(context.saved[0]->data<std::int32_t>());
    fake_quant_forward(x.data<float>(), y, x.elements(), grids, mask);
    if (context.packed != nullptr) pack_output(context, grids);
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
    float *d_min = data_or_null<float>(context.d_inputs[1]), *d_max = data_or_null<float>(context.d_inputs[2]);
    ScratchScope scope;
    const std::span<const Range<float>> ranges = ranges_again<FastRanges>(attributes_, forward, scope);
    const ChannelGrids grids = channel_grids(grids_of<FastRanges>(attributes_, ranges, scope), scope);
    const std::span<RangeSums> sums = scope.take<RangeSums>(d_min || d_max ? ranges.size() : 0);
    const double pull = dampens(forward) ? 2 * attributes_.dampening_in(dampened_steps<float>(forward)) : 0;
    fake_quant_backward(forward.input(0).data<float>(), dy.data<float>(), dy.elements(), grids, dx, sums, learns(),
                        static_cast<float>(pull));
    range_gradients(attributes_, ranges, sums, d_min, d_max);
  }

  void reference_forward(const ForwardContext& context) const override {
    with_float_type(context.input(0), [&]<class T>(T) {
      const std::span<const T> x = context.input(0).values<T>();
      T* y = context.output(0).data<T>();
      count_dampened<T>(context);
      ScratchScope scope;
      const std::span<const Range<T>> ranges = ranges_of_step<ReferenceRanges<T>>(attributes_, context, scope);
      if (!quantizes(context))
        std::ranges::copy(x, y);
      else
        reference::fake_quant_forward<T>(x, grids_of<ReferenceRanges<T>>(attributes_, ranges, scope), y);
    });
  }

  void reference_backward(const BackwardContext& context) const override {
    const ForwardContext& forward = *context.forward;
    with_float_type(*context.d_outputs[0], [&]<class T>(T) {
      const std::span<const T> x = forward.input(0).values<T>(), dy = context.d_outputs[0]->values<T>();
      T* dx = data_or_null<T>(context.d_inputs[0]);
      if (!quantizes(forward)) {
        if (dx) std::ranges::copy(dy, dx);
        return clear_range_gradients<T>(context);
      }
      T *d_min = data_or_null<T>(context.d_inputs[1]), *d_max = data_or_null<T>(context.d_inputs[2]);
      ScratchScope scope;
      const std::span<const Range<T>> ranges = ranges_again<ReferenceRanges<T>>(attributes_, forward, scope);
      const std::span<const Affine<T>> grids = grids_of<ReferenceRanges<T>>(attributes_, ranges, scope);
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
    return sets_ranges(attributes_, phase, inputs[0].shape) ? static_cast<std::size_t>(inputs[1].shape.elements()) : 0;
  }

  void store_observed(const ForwardContext& context, Backend backend) const override {
    with_float_type(*context.update_of(1), [&]<class T>(T) {
      count_dampened<T>(context);
      ScratchScope scope;
      Observation<T> observation = observation_of(context.observed, scope.take<Range<T>>(context.observed.size()));
      if (backend == Backend::kReference) return stage_ranges<ReferenceRanges<T>>(attributes_, context, 1, observation);
      if constexpr (std::is_same_v<T, float>) stage_ranges<FastRanges>(attributes_, context, 1, observation);
    });
  }

  std::optional<PackedForm> packed_output(std::span<const TensorSpec> inputs, const Phase& phase) const override {
    std::optional<PackedForm> form = packed_form(attributes_.grid_options());
    if (!form || !quantizes(phase)) return std::nullopt;
    form->elements = inputs[0].shape.elements(), form->grids = inputs[1].shape.elements(), form->needs_tensor = true;
    return form;
  }

  std::optional<layers::ChainRole> chain_role() const override {
    // A chain has one range for its tensor, and adds nothing of its own to the gradient.
    if (attributes_.per_channel || attributes_.dampens()) return std::nullopt;
    return layers::chain_role::Rounding{chain_quantizer(attributes_)};
  }

 private:
  bool quantizes(const Phase& phase) const { return attributes_.quantizes(phase.quantization_step); }
  bool learns() const { return traits_of(attributes_.range).learned; }
  /// Whether backward needs no more than saved(): where neither the range has a gradient nor dampening adds one. Else
  /// it sums up what lies below and above the range, or looks at the distance from the grid.
  bool backward_reads_mask() const { return attributes_.observes_range() && !attributes_.dampens(); }

  // Dampening adds a term to the gradient of x. The last state counts the steps in which it acts, the one at hand, too.

  bool dampens(const Phase& phase) const { return attributes_.dampens() && phase.training; }
  template <class T>
  void count_dampened(const ForwardContext& context) const {
    if (attributes_.dampening > 0 && context.training && quantizes(context))
      ++*context.state.back()->template data<T>();
  }
  template <class T>
  std::int64_t dampened_steps(const ForwardContext& forward) const {
    return static_cast<std::int64_t>(*forward.state.back()->template data<T>());
  }

  /// Leaves y in bytes, too, behind which its grids lie.
  static void pack_output(const ForwardContext& context, std::span<const Affine<float>> grids) {
    const Tensor& y = context.output(0);
    const PackedForm form{.elements = y.elements(), .grids = std::ssize(grids)};
    std::ranges::transform(grids, packed_grids(form, *context.packed).begin(), [](const Affine<float>& grid) {
      return CodeGrid{grid.scale, grid.zero_point};
    });
    pack(form, y.data<float>(), *context.packed);
  }
};

}  // namespace

std::shared_ptr<Op> FakeQuant::make(const Attributes& attributes) { return std::make_shared<FakeQuantOp>(attributes); }

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
