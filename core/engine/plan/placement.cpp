#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "core/engine/plan/passes.h"

namespace miniqat {
namespace {

/// Tensors of fewer bytes are not worth the work of packing them.
constexpr std::size_t kWorthPacking = std::size_t{1} << 18;

bool differentiable(const SelectedNode& selected, int input) {
  const std::vector<int>& none = selected.traits.no_gradient;
  return std::ranges::find(none, input) == none.end() && selected.inputs[input].spec().dtype == DType::kFloat32;
}

/// The node of output 0: the last one of fused nodes, though others of them may give further outputs.
const Node* producer(const SelectedNode& selected) { return selected.outputs.front().node; }

TensorLives reads_of_tensors(const SelectedNodes& nodes, const GradientFlow& flow, const Packing& packing,
                             const PlanRequest& request) {
  const int count = static_cast<int>(nodes.size());
  TensorLives lives;
  const auto keep_until = [&](const Output& output, int step) -> TensorLife& {
    TensorLife& life = lives[key_of(output)];
    life.last_read = std::max(life.last_read, step);
    if (step < count)
      life.last_forward_read = std::max(life.last_forward_read, step);
    else if (life.first_backward_read == TensorLife::kNever || step < life.first_backward_read)
      life.first_backward_read = step;
    return life;
  };
  const auto read = [&](const Output& output, int step) { keep_until(output, step).is_read = true; };
  const auto read_packed = [&](const Output& output, int step) {
    int& last = lives[packing.root_of(output)].last_packed_read;
    last = std::max(last, step);
  };
  for (int i = 0; i < count; ++i) {
    const SelectedNode& selected = nodes[i];
    for (const Output& output : selected.outputs)
      keep_until(output, request.backend == Backend::kFast ? i : end_step(nodes));
    const bool reads_packed = packing.readers.contains(i);
    for (const Output& input : selected.inputs) {
      if (reads_packed)
        read_packed(input, i), lives[key_of(input)].is_read = true;
      else
        read(input, i);
    }
    if (!flow.runs_backward[i]) continue;
    for (const int k : selected.traits.backward_inputs)
      if (packing.is_backward_reader(i))
        read_packed(selected.inputs[k], backward_step(nodes, i));
      else
        read(selected.inputs[k], backward_step(nodes, i));
    for (const int k : selected.traits.backward_outputs) read(selected.outputs[k], backward_step(nodes, i));
  }
  for (const Output& fetch : request.fetches) read(fetch, end_step(nodes));
  if (request.gradients_of) read(*request.gradients_of, 0);
  return lives;
}

/// The outputs that some node gives another shape in the same memory.
std::set<TensorKey> viewed_tensors(const SelectedNodes& nodes) {
  std::set<TensorKey> viewed;
  for (const SelectedNode& selected : nodes)
    if (selected.traits.view) viewed.insert(key_of(selected.inputs[0]));
  return viewed;
}

/// A tensor and its views become one: what the views' readers need, the root has to have. (A view by itself reads
/// nothing.)
class ViewsOfPacked {
 public:
  ViewsOfPacked(const SelectedNodes& nodes, const Packing& packing) : nodes_(nodes), packing_(packing) {}

  /// For a root at node i that some node reads packed.
  void join(int i, TensorLives& lives) const {
    const TensorKey root = key_of(nodes_[i].outputs[0]);
    TensorLife& life = lives.at(root);
    life.is_only_packed = !packing_.forms.at(root).needs_tensor && !is_read_in_forward(root, lives);
    for (const auto& [view, of] : packing_.roots) {
      if (of != root) continue;
      const TensorLife& of_view = lives.at(view);
      life.last_read = std::max(life.last_read, of_view.last_read);
      life.last_forward_read = std::max(life.last_forward_read, of_view.last_forward_read);
      if (life.first_backward_read == TensorLife::kNever ||
          (of_view.first_backward_read != TensorLife::kNever && of_view.first_backward_read < life.first_backward_read))
        life.first_backward_read = of_view.first_backward_read;
    }
  }

 private:
  /// Whether a node that is no view of the tensor reads its numbers, or a fetch does.
  bool is_read_in_forward(const TensorKey& root, const TensorLives& lives) const {
    const int end = end_step(nodes_);
    const auto is_fetched = [&](const TensorKey& key) { return lives.at(key).last_read >= end; };
    if (is_fetched(root)) return true;
    for (const auto& [view, of] : packing_.roots)
      if (of == root && is_fetched(view)) return true;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (packing_.readers.contains(static_cast<int>(i)) || nodes_[i].traits.view) continue;
      for (const Output& input : nodes_[i].inputs)
        if (packing_.root_of(input) == root) return true;
    }
    return false;
  }

  const SelectedNodes& nodes_;
  const Packing& packing_;
};

}  // namespace

GradientFlow gradient_flow(const SelectedNodes& nodes, const PlanRequest& request) {
  GradientFlow flow;
  flow.runs_backward.assign(nodes.size(), false);
  if (!request.gradients_of) return flow;
  std::set<const Node*> wanting;
  for (const Output& target : request.gradient_targets) wanting.insert(target.node);
  const auto takes_gradient = [&](const SelectedNode& selected, std::size_t input) {
    return differentiable(selected, static_cast<int>(input)) && wanting.contains(selected.inputs[input].node);
  };
  for (const SelectedNode& selected : nodes)
    for (std::size_t k = 0; k < selected.inputs.size(); ++k)
      if (takes_gradient(selected, k))
        for (const Output& output : selected.outputs) wanting.insert(output.node);
  if (!wanting.contains(request.gradients_of->node)) return flow;
  flow.reached.insert(key_of(*request.gradients_of));
  for (int i = static_cast<int>(nodes.size()) - 1; i >= 0; --i) {
    const SelectedNode& selected = nodes[i];
    if (selected.inputs.empty() || !wanting.contains(producer(selected))) continue;
    flow.runs_backward[i] = std::ranges::any_of(
        selected.outputs, [&](const Output& output) { return flow.reached.contains(key_of(output)); });
    if (!flow.runs_backward[i]) continue;
    for (std::size_t k = 0; k < selected.inputs.size(); ++k)
      if (takes_gradient(selected, k)) {
        flow.reached.insert(key_of(selected.inputs[k]));
        flow.inputs.insert({i, static_cast<int>(k)});
      }
  }
  return flow;
}

TensorLives tensor_lives(const SelectedNodes& nodes, const GradientFlow& flow, const Packing& packing,
                         const PlanRequest& request) {
  TensorLives lives = reads_of_tensors(nodes, flow, packing, request);
  const std::set<TensorKey> viewed = viewed_tensors(nodes);
  const ViewsOfPacked views(nodes, packing);
  for (int i = 0; i < static_cast<int>(nodes.size()); ++i) {
    const Output& out = nodes[i].outputs[0];
    const auto form = packing.forms.find(key_of(out));
    if (form == packing.forms.end()) continue;
    TensorLife& life = lives.at(key_of(out));
    const bool has_readers = life.last_packed_read != TensorLife::kNever;
    if (has_readers) views.join(i, lives);
    const bool is_large = out.spec().bytes() >= kWorthPacking && request.training && !form->second.needs_tensor &&
                          (has_readers || !viewed.contains(key_of(out)));
    const bool rests = life.first_backward_read != TensorLife::kNever && life.last_read < end_step(nodes);
    life.rests_packed = rests && (is_large || life.is_only_packed);
    life.is_packed = has_readers || life.rests_packed;
  }
  for (const auto& [view, root] : packing.roots) {
    lives.at(view).rests_packed = lives.at(root).rests_packed;
    lives.at(view).is_only_packed = lives.at(root).is_only_packed;
  }
  return lives;
}

namespace {

/// Walks through the steps in their order: whether a tensor may share a stretch depends on who else lives there by
/// then.
class Placer {
 public:
  Placer(const SelectedNodes& nodes, const GradientFlow& flow, const Packing& packing, const TensorLives& lives,
         const PlanRequest& request)
      : nodes_(nodes), flow_(flow), packing_(packing), lives_(lives), request_(request) {
    for (std::size_t i = 0; i < nodes.size(); ++i)
      for (const Output& output : nodes[i].outputs) producer_[output.node] = static_cast<int>(i);
  }

  Placement place() {
    for (const SelectedNode& selected : nodes_)
      if (const TensorLife& life = lives_.at(key_of(selected.outputs[0])); life.is_packed && life.rests_packed)
        placed_.unpacked[key_of(selected.outputs[0])] =
            new_stretch(bytes_of(selected.outputs[0]), life.first_backward_read, life.last_read);
    const int count = static_cast<int>(nodes_.size());
    for (int i = 0; i < count; ++i) place_forward(i);
    if (flow_.reached.empty()) return std::move(placed_);
    own_gradient(*request_.gradients_of, count);
    for (int i = count - 1; i >= 0; --i)
      if (flow_.runs_backward[i]) place_backward(i);
    return std::move(placed_);
  }

 private:
  bool fast() const { return request_.backend == Backend::kFast; }
  std::size_t bytes_of(const Output& output) const { return planned(output.spec(), request_).bytes(); }
  int value(const Output& output) const { return placed_.values.at(key_of(output)); }
  int last_step(int stretch) const { return placed_.stretches[stretch].last; }

  int new_stretch(std::size_t bytes, int first, int last) {
    placed_.stretches.push_back({bytes, first, last});
    return static_cast<int>(placed_.stretches.size()) - 1;
  }

  int shared(int stretch, int last) {
    placed_.stretches[stretch].last = std::max(placed_.stretches[stretch].last, last);
    return stretch;
  }

  void place_forward(int i) {
    const SelectedNode& selected = nodes_[i];
    if (selected.node->inputs().empty()) return place_source(i);
    for (std::size_t k = 0; k < selected.outputs.size(); ++k)
      if (!is_left_out(selected, static_cast<int>(k)))
        placed_.values[key_of(selected.outputs[k])] = place_output(i, static_cast<int>(k));
    if (fast() && flow_.runs_backward[i])
      for (const TensorSpec& spec : saved_by(*selected.op, selected.input_specs()))
        placed_.saved[i].push_back(new_stretch(spec.bytes(), i, backward_step(nodes_, i)));
    if (const TensorLife& life = lives_.at(key_of(selected.outputs[0])); life.is_packed)
      placed_.packed[i] =
          new_stretch(packing_.forms.at(key_of(selected.outputs[0])).spec().bytes(), i,
                      std::max(life.last_packed_read, life.rests_packed ? life.first_backward_read : i));
  }

  /// Bytes that are fed become numbers before the first step, where some step reads numbers.
  void place_source(int i) {
    const Output& out = nodes_[i].outputs[0];
    const TensorLife& life = lives_.at(key_of(out));
    int& place = placed_.values[key_of(out)] = Placement::kBound;
    if (!packing_.forms.contains(key_of(out))) return;
    placed_.packed[i] = Placement::kBound;
    place = life.is_only_packed
                ? Placement::kNowhere
                : new_stretch(bytes_of(out), 0, life.rests_packed ? life.last_forward_read : life.last_read);
  }

  /// An output that forward can do without, and nobody reads.
  bool is_left_out(const SelectedNode& selected, int k) const {
    const std::vector<int>& optional = selected.traits.optional_outputs;
    return fast() && std::ranges::find(optional, k) != optional.end() &&
           !lives_.at(key_of(selected.outputs[k])).is_read;
  }

  int place_output(int i, int k) {
    const auto& [traits, inputs, outputs] = std::tie(nodes_[i].traits, nodes_[i].inputs, nodes_[i].outputs);
    const TensorLife& life = lives_.at(key_of(outputs[k]));
    if (k == 0 && life.is_only_packed) return Placement::kNowhere;
    const int last = life.rests_packed ? life.last_forward_read : life.last_read;
    if (k == 0 && fast() && traits.view)
      return value(inputs[0]) == Placement::kBound ? Placement::kBound : shared(value(inputs[0]), last);
    if (k == 0 && fast() && traits.forward_in_place && may_overwrite_input(i)) return shared(value(inputs[0]), last);
    return new_stretch(bytes_of(outputs[k]), i, last);
  }

  /// Node i is the last to read what its input 0 lives in, and reads it through no other shape.
  bool may_overwrite_input(int i) const {
    const std::vector<Output>& inputs = nodes_[i].inputs;
    const int stretch = value(inputs[0]);
    if (stretch < 0 || last_step(stretch) > i || bytes_of(inputs[0]) != bytes_of(nodes_[i].outputs[0])) return false;
    return std::ranges::all_of(inputs,
                               [&](const Output& other) { return other == inputs[0] || value(other) != stretch; });
  }

  void place_backward(int i) {
    const std::vector<Output>& inputs = nodes_[i].inputs;
    const int now = backward_step(nodes_, i);
    for (int k = 0; k < static_cast<int>(inputs.size()); ++k) {
      if (!flow_.inputs.contains({i, k})) continue;
      if (placed_.gradients.contains(key_of(inputs[k])))
        placed_.gradient_parts[{i, k}] = new_stretch(bytes_of(inputs[k]), now, fast() ? now : end_step(nodes_));
      else if (k == 0 && may_overwrite_output_gradient(i))
        share_gradient(inputs[k], placed_.gradients.at(key_of(nodes_[i].outputs[0])));
      else if (may_write_gradient_over_input(i, k))
        share_gradient(inputs[k], value_in_backward(inputs[k]));
      else
        own_gradient(inputs[k], now);
    }
  }

  void own_gradient(const Output& output, int first) {
    placed_.gradients[key_of(output)] = new_stretch(bytes_of(output), first, last_step_of_gradient(output));
  }

  void share_gradient(const Output& output, int stretch) {
    placed_.gradients[key_of(output)] = shared(stretch, last_step_of_gradient(output));
  }

  int last_step_of_gradient(const Output& output) const {
    const int i = producer_.at(output.node);
    const std::vector<Output>& targets = request_.gradient_targets;
    const bool is_target = std::ranges::find(targets, output) != targets.end();
    return !fast() || is_target || !flow_.runs_backward[i] ? end_step(nodes_) : backward_step(nodes_, i);
  }

  bool may_overwrite_output_gradient(int i) const {
    const auto& [traits, inputs, outputs] = std::tie(nodes_[i].traits, nodes_[i].inputs, nodes_[i].outputs);
    if (!fast() || !(traits.view || traits.backward_in_place) || !flow_.reached.contains(key_of(outputs[0])))
      return false;
    return bytes_of(outputs[0]) == bytes_of(inputs[0]) &&
           last_step(placed_.gradients.at(key_of(outputs[0]))) <= backward_step(nodes_, i);
  }

  bool may_write_gradient_over_input(int i, int k) const {
    // What is only read packed need not stay for it.
    if (!fast() || k != nodes_[i].traits.gradient_over_input || packing_.is_backward_reader(i)) return false;
    const std::vector<Output>& inputs = nodes_[i].inputs;
    const int stretch = value_in_backward(inputs[k]);
    return stretch >= 0 && last_step(stretch) <= backward_step(nodes_, i) &&
           std::ranges::count(inputs, stretch, [&](const Output& input) { return value_in_backward(input); }) == 1;
  }

  int value_in_backward(const Output& output) const {
    const auto found = placed_.unpacked.find(packing_.root_of(output));
    return found != placed_.unpacked.end() ? found->second : value(output);
  }

  const SelectedNodes& nodes_;
  const GradientFlow& flow_;
  const Packing& packing_;
  const TensorLives& lives_;
  const PlanRequest& request_;
  /// The position of the node that makes a tensor.
  std::unordered_map<const Node*, int> producer_;
  Placement placed_;
};

}  // namespace

Placement place_tensors(const SelectedNodes& nodes, const GradientFlow& flow, const Packing& packing,
                        const TensorLives& lives, const PlanRequest& request) {
  return Placer(nodes, flow, packing, lives, request).place();
}

}  // namespace miniqat
