#include <algorithm>
#include <set>
#include <vector>

#include "core/engine/plan/passes.h"
#include "core/graph/op_interfaces.h"
#include "core/tensors/coded.h"
#include "core/text/error.h"

namespace miniqat {
namespace {

/// What views show.
using Shown = std::map<TensorKey, TensorKey>;

TensorKey found_behind(const Shown& shown, const Output& output) {
  const auto found = shown.find(key_of(output));
  return found != shown.end() ? found->second : key_of(output);
}

/// The forms of a layer's inputs that quantizers have put on grids of bytes, which views of them keep.
struct InputForms {
  std::vector<PackedForm> forms;
  /// The first input that has none, and what gives it.
  int missing = 0;
  const Node* giver = nullptr;

  InputForms(const SelectedNode& selected, const std::map<TensorKey, PackedForm>& all, const Shown& shown) {
    for (int k = static_cast<int>(selected.inputs.size()) - 1; k >= 0; --k) {
      const TensorKey root = found_behind(shown, selected.inputs[static_cast<std::size_t>(k)]);
      const auto found = all.find(root);
      if (found != all.end() && !root.first->inputs().empty()) {
        forms.insert(forms.begin(), found->second);
      } else {
        missing = k;
        giver = root.first;
      }
    }
  }
};

std::string why_float(const SelectedNode& selected, const ReadsPacked& reads, const InputForms& found) {
  if (found.forms.size() == selected.inputs.size()) return reads.why_not_packed(selected.input_specs(), found.forms);
  if (std::string why = reads.why_not_packed(selected.input_specs(), {}); !why.empty()) return why;
  const char* what = found.missing == 0 ? "input" : "weights";
  return found.giver->inputs().empty() ? concat("its ", what, " not quantized")
                                       : concat("no bytes of its ", what, " (", found.giver->op().type(), ")");
}

/// Ops that pass bytes on (PassesPacked) do so where somebody reads theirs.
class Passing {
 public:
  explicit Passing(Packing& packing) : packing_(packing) {}

  /// Node i may make bytes of those of the tensor `root`.
  void offer(int i, const SelectedNode& selected, const TensorKey& root) {
    const auto* passes = as<PassesPacked>(*selected.op);
    const auto found = packing_.forms.find(root);
    if (passes == nullptr || found == packing_.forms.end() || found->second.grids != 1 || root.first->inputs().empty())
      return;
    packing_.forms.emplace(key_of(selected.outputs[0]), passes->passed_form(selected.input_specs(), found->second));
    offers_.push_back({.node = i, .from = root, .to = key_of(selected.outputs[0])});
  }

  /// Makes readers of those whose bytes somebody reads, and forgets the others' forms. `nodes`: all of them.
  void settle(const SelectedNodes& nodes) {
    std::set<TensorKey> read;
    for (const int reader : packing_.readers)
      for (const Output& input : nodes[static_cast<std::size_t>(reader)].inputs) read.insert(packing_.root_of(input));
    for (auto offer = offers_.rbegin(); offer != offers_.rend(); ++offer) {
      if (read.contains(offer->to)) {
        packing_.readers.insert(offer->node);
        read.insert(offer->from);
        continue;
      }
      packing_.forms.erase(offer->to);
      std::erase_if(packing_.roots, [&](const auto& view) { return view.second == offer->to; });
    }
  }

 private:
  struct Offer {
    int node;
    TensorKey from, to;
  };

  Packing& packing_;
  std::vector<Offer> offers_;
};

}  // namespace

TensorKey Packing::root_of(const Output& output) const { return found_behind(roots, output); }

Packing choose_packing(const SelectedNodes& nodes, const PlanRequest& request) {
  Packing packing;
  if (request.backend != Backend::kFast) return packing;
  const bool on_integers = request.arithmetic == Arithmetic::kInteger;
  // All views, in whichever arithmetic; packing.roots has those of integers alone.
  Shown shown;
  Passing passing(packing);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const SelectedNode& selected = nodes[i];
    const int number = static_cast<int>(i);
    const Output& out = selected.outputs[0];
    if (std::ranges::find(request.coded, out) != request.coded.end())
      packing.forms.emplace(key_of(out), form_of_bytes(out.shape().elements()));
    if (const auto form = packed_output_of(*selected.op, selected.input_specs(), phase_of(request)))
      packing.forms.emplace(key_of(out), *form);
    if (selected.traits.view) {
      const TensorKey root = found_behind(shown, selected.inputs[0]);
      shown[key_of(out)] = root;
      if (on_integers && packing.forms.contains(root)) packing.roots[key_of(out)] = root;
    }
    if (on_integers && selected.inputs.size() == 1)
      passing.offer(number, selected, found_behind(shown, selected.inputs[0]));
    const auto* reads = as<ReadsPacked>(*selected.op);
    if (reads == nullptr) continue;
    const InputForms found(selected, packing.forms, shown);
    if (on_integers)
      if (std::string why = why_float(selected, *reads, found); !why.empty())
        packing.floats.emplace(number, std::move(why));
    if (on_integers && !packing.floats.contains(number)) {
      packing.readers.insert(number);
      if (request.rounding != FactorRounding::kNone &&
          reads->has_packed_gradients(selected.input_specs(), found.forms, request.rounding))
        packing.rounds.insert(number);
    } else if (request.rounding == FactorRounding::kAllToBfloat16 && found.forms.empty() &&
               reads->rounds_factors(selected.input_specs())) {
      packing.rounds.insert(number);
    }
  }
  passing.settle(nodes);
  return packing;
}

std::vector<PlannedLayer> planned_layers(const Graph& graph, const PlanRequest& request) {
  const SelectedNodes nodes = fuse_nodes(select_nodes(graph, request), request);
  const Packing packing = choose_packing(nodes, request);
  std::vector<PlannedLayer> layers;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const int number = static_cast<int>(i);
    const std::int64_t products = multiply_adds_of(*nodes[i].op, nodes[i].input_specs());
    if (products == 0) continue;
    const auto why = packing.floats.find(number);
    layers.push_back({.node = nodes[i].node,
                      .multiply_adds = products,
                      .on_integers = packing.readers.contains(number),
                      .why_float = why == packing.floats.end() ? "" : why->second,
                      .rounds = packing.rounds.contains(number)});
  }
  return layers;
}

}  // namespace miniqat
