#include "core/engine/sweep.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "core/engine/profile.h"
#include "core/graph/op_interfaces.h"
#include "core/kernels/packed.h"
#include "core/memory/guarded_memory.h"
#include "core/platform/interruption.h"
#include "core/tensors/coded.h"
#include "core/tensors/random.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"

namespace miniqat {
namespace {

using enum ProfilePhase;

template <class T>
void add_to(std::span<T> total, std::span<const T> part) {
  parallel_for(static_cast<std::int64_t>(total.size()), kPointwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) total[i] += part[i];
  });
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
  add_addresses(context.packed_inputs, addresses);
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

/// Adds up the bytes of tensors, each memory once.
class Bytes {
 public:
  void add(const Tensor* tensor) {
    if (tensor == nullptr || !tensor->defined() || std::ranges::find(seen_, tensor->raw()) != seen_.end()) return;
    seen_.push_back(tensor->raw());
    sum_ += static_cast<double>(tensor->bytes());
  }
  void add_all(const auto& tensors) {
    for (const Tensor* tensor : tensors) add(tensor);
  }
  double sum() const { return sum_; }

 private:
  std::vector<const void*> seen_;
  double sum_ = 0;
};

std::vector<TensorSpec> specs_of(const std::vector<const Tensor*>& tensors) {
  std::vector<TensorSpec> specs;
  for (const Tensor* tensor : tensors) specs.push_back(tensor->spec());
  return specs;
}

double products(const Op& op, const ForwardContext& context) {
  return static_cast<double>(multiply_adds_of(op, specs_of(context.inputs)));
}

/// The work of the fast forward, and of the fast backward: the tensors that OpTraits says backward reads, and for a
/// layer one product for each gradient. Nothing for an op that only shows its input in another shape.
PartWork work_of(const Op& op, const ForwardContext& context) {
  if (op.traits().view) return {};
  Bytes read, written;
  read.add_all(context.packed_inputs.empty() ? context.inputs : context.packed_inputs);
  written.add_all(context.outputs);
  written.add_all(context.saved);
  written.add(context.packed);
  return {.multiply_adds = products(op, context), .bytes = read.sum() + written.sum()};
}

PartWork work_of(const Op& op, const BackwardContext& context) {
  const OpTraits traits = op.traits();
  if (traits.view) return {};
  Bytes read, written;
  read.add_all(context.d_outputs);
  if (context.forward->rounding != FactorRounding::kNone && !context.forward->packed_inputs.empty())
    read.add_all(context.forward->packed_inputs);
  else
    for (const int input : traits.backward_inputs) read.add(context.forward->inputs[static_cast<std::size_t>(input)]);
  for (const int output : traits.backward_outputs) read.add(context.forward->outputs[static_cast<std::size_t>(output)]);
  read.add_all(context.forward->saved);
  written.add_all(context.d_inputs);
  const auto gradients = std::ranges::count_if(context.d_inputs, [](const Tensor* gradient) { return gradient; });
  return {.multiply_adds = static_cast<double>(gradients) * products(op, *context.forward),
          .bytes = read.sum() + written.sum()};
}

/// Times a step of a plan. Nodes that run as one go by the scope they are in: its op says which they are.
template <class Context>
ProfileScope time_step(Profile* profile, ProfilePhase phase, const Node& node, const Op& op, std::string_view type,
                       const Context& context) {
  if (profile == nullptr) return {nullptr, phase, {}, {}};
  const std::string_view name = node.name();
  const std::size_t slash = name.rfind('/');
  const bool fused = &op != &node.op();
  return {profile, phase, fused && slash != std::string_view::npos ? name.substr(0, slash) : name, type,
          work_of(op, context)};
}

/// Tensors that are read or written; one that is both stands twice.
PartWork moved(std::initializer_list<const Tensor*> tensors) {
  PartWork work;
  for (const Tensor* tensor : tensors) work.bytes += static_cast<double>(tensor->bytes());
  return work;
}

/// For an observer: a view of an output that forward only packs, which show_packed() has shown.
void show_view(const Plan::ForwardStep& step) {
  Tensor* output = step.context.outputs[0];
  if (step.op->traits().view && !output->defined() && step.context.input(0).defined())
    *output = step.context.input(0).reshaped(output->shape());
}

/// For an observer: an output that forward has only packed.
void show_packed(const Plan::ForwardStep& step) {
  const ForwardContext& context = step.context;
  Tensor* output = context.outputs[0];
  if (context.packed == nullptr || output->defined()) return;
  *output = Tensor(output->spec());
  unpack(step.packed_form, *context.packed, output->data<float>());
}

/// Bytes that were fed become the numbers that steps, or an observer, want to read.
void unpack_fed(const Plan::Binding& fed, const Sweep& how) {
  if (fed.codes == nullptr) return;
  if (how.observer != nullptr && !fed.tensor->defined()) *fed.tensor = Tensor(fed.tensor->spec());
  if (!fed.tensor->defined()) return;
  const ProfileScope timed(how.profile, kForward, fed.node->name(), "(unpack)", moved({fed.codes, fed.tensor}));
  unpack(form_of_bytes(fed.tensor->elements()), *fed.codes, fed.tensor->data<float>());
}

}  // namespace

void add_to(Tensor& total, const Tensor& part) {
  with_float_type(total, [&]<class T>(T) { add_to<T>(total.values<T>(), part.values<T>()); });
}

void sweep(Plan& plan, const Sweep& how) {
  for (Tensor& stretch : plan.stretches) poison({static_cast<std::byte*>(stretch.raw()), stretch.bytes()});
  {
    const ProfileScope timed(how.profile, kOther, "updated variables", "(copy)");
    for (Plan::Staged& staged : plan.staged) staged.tensor.assign(*staged.value);
  }
  for (const Plan::Packed& packed : plan.packed) packed.move_to(packed.forward_place);
  for (const Plan::Binding& fed : plan.placeholders) unpack_fed(fed, how);
  if (how.observer != nullptr) how.observer->begin(plan);
  const bool reference = how.backend == Backend::kReference;
  for (Plan::ForwardStep& forward : plan.forward) {
    interruption_point();
    const ProfileScope timed =
        time_step(how.profile, kForward, *forward.node, *forward.op, forward.type, forward.context);
    forward.context.random_key = mix(mix(how.seed, forward.name_hash), static_cast<std::uint64_t>(how.step));
    forward.context.slice = how.slice;
    const Op& op = *forward.op;
    if (how.observer != nullptr) {
      show_view(forward);
      how.observer->before(forward);
    }
    in_the_name_of(*forward.node, "forward", forward.context,
                   [&] { reference ? op.reference_forward(forward.context) : op.forward(forward.context); });
    if (how.observer != nullptr) {
      show_packed(forward);
      how.observer->after(forward);
    }
  }
  if (plan.seed != nullptr)
    with_float_type(*plan.seed, [&]<class T>(T) { std::ranges::fill(plan.seed->values<T>(), T{1}); });
  for (std::size_t i = 0; i < plan.backward.size(); ++i) {
    interruption_point();
    const Plan::BackwardStep& backward = plan.backward[i];
    const Op& op = *backward.op;
    for (const Plan::Packed* packed : backward.unpacks) {
      packed->move_to(packed->backward_place);
      Tensor& tensor = *packed->tensors.front();
      const ProfileScope timed(how.profile, kBackward, backward.node->name(), "(unpack)",
                               moved({packed->bytes, &tensor}));
      unpack(packed->form, *packed->bytes, tensor.data<float>());
    }
    if (how.observer != nullptr) how.observer->before(backward);
    {
      const ProfileScope timed = time_step(how.profile, kBackward, *backward.node, op, op.type(), backward.context);
      in_the_name_of(*backward.node, "backward", backward.context,
                     [&] { reference ? op.reference_backward(backward.context) : op.backward(backward.context); });
    }
    if (how.observer != nullptr) how.observer->after(backward);
    if (!backward.sums.empty()) {
      for (const Plan::Sum& sum : backward.sums) {
        const ProfileScope timed(how.profile, kBackward, backward.node->name(), "(gradient sum)",
                                 moved({sum.total, sum.part, sum.total}));
        add_to(*sum.total, *sum.part);
      }
    }
    if (how.after_backward) how.after_backward(i);
  }
  if (how.observer != nullptr) how.observer->end(plan);
}

}  // namespace miniqat
