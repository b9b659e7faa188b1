#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <unordered_map>

#include "core/engine/session.h"
#include "core/graph/graph_json.h"
#include "core/graph/source_ops.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/threads/parallel.h"
#include "layers/layers.h"
#include "tests/fuzz/stages.h"

namespace miniqat::fuzz {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

/// The first `to` elements of every axis.
Tensor cropped(const Tensor& tensor, const Shape& to) {
  Tensor result(to, tensor.dtype());
  const std::size_t bytes = byte_size(tensor.dtype());
  for (std::int64_t i = 0; i < to.elements(); ++i) {
    std::int64_t rest = i, from = 0, stride = 1;
    for (int axis = to.rank() - 1; axis >= 0; --axis) {
      from += rest % to[axis] * stride;
      rest /= to[axis];
      stride *= tensor.shape()[axis];
    }
    std::copy_n(static_cast<const std::byte*>(tensor.raw()) + from * bytes, bytes,
                static_cast<std::byte*>(result.raw()) + i * bytes);
  }
  return result;
}

class Shrinker {
 public:
  Shrinker(const GraphCase& test, const Fails& fails, double seconds)
      : best_(test.clone()),
        fails_(fails),
        end_(Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))) {}

  void isolate(const std::vector<std::string>& names) {
    if (names.empty() || names.size() == best_.graph.size()) return;
    std::set<const Node*> nodes;
    for (const std::string& name : names)
      if (const Node* node = best_.graph.find(name)) nodes.insert(node);
    if (nodes.size() != names.size()) return;
    std::vector<Output> outputs;
    for (const Node* node : nodes)
      if (std::ranges::none_of(node->uses(), [&](const Use& use) { return nodes.contains(use.node); }))
        outputs.push_back(const_cast<Node*>(node)->output());
    attempt([&] { return part(outputs, [&](const Node& node) { return !nodes.contains(&node); }); });
  }

  GraphCase run() {
    bool better = true;
    while (better && Clock::now() < end_) {
      better = false;
      better = shorten() || better;
      better = simplify_run() || better;
      better = plainer_attributes() || better;
      better = smaller_extents() || better;
    }
    return std::move(best_);
  }

 private:
  /// Takes what `make` makes if that fails, too.
  template <class Make>
  bool attempt(const Make& make) {
    if (Clock::now() >= end_) return false;
    try {
      GraphCase smaller = make();
      if (!fails_(smaller)) return false;
      best_ = std::move(smaller);
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

  /// What `outputs` need of the graph; `is_cut` nodes become placeholders that are fed what they compute now.
  template <class IsCut>
  GraphCase part(const std::vector<Output>& outputs, const IsCut& is_cut) {
    GraphCase result = best_.clone();
    result.graph = Graph();
    std::unordered_map<const Node*, bool> needed;
    std::vector<Output> cut;
    const auto need = [&](const auto& self, const Node* node) -> void {
      if (!needed.emplace(node, true).second) return;
      for (const Output& input : node->inputs())
        if (input.node->inputs().empty() || !is_cut(*input.node))
          self(self, input.node);
        else if (std::ranges::find(cut, input) == cut.end())
          cut.push_back(input);
    };
    for (const Output& output : outputs) need(need, output.node);
    std::map<std::pair<const Node*, int>, Output> made;
    const std::vector<Tensor> values = compute(cut);
    for (std::size_t k = 0; k < cut.size(); ++k) {
      const std::string name = concat("cut", k, "of", best_.graph.size());
      made[{cut[k].node, cut[k].index}] = layers::placeholder(result.graph, name, cut[k].shape(), cut[k].spec().dtype);
      result.values[name] = values[k];
    }
    for (const Node* node : best_.graph.topological_order()) {
      if (!needed.contains(node)) continue;
      std::vector<Output> inputs;
      for (const Output& input : node->inputs()) inputs.push_back(made.at({input.node, input.index}));
      Node& copy = result.graph.add(node->name(), node->shared_op(), inputs);
      for (int k = 0; k < static_cast<int>(copy.output_specs().size()); ++k) made[{node, k}] = copy.output(k);
    }
    std::vector<Output> ends;
    for (const Output& output : outputs) ends.push_back(made.at({output.node, output.index}));
    result.graph.set_outputs(ends);
    return result;
  }

  std::vector<Tensor> compute(const std::vector<Output>& outputs) {
    if (outputs.empty()) return {};
    set_thread_count(1);
    GraphCase first = best_.clone();
    Graph graph = with_loss(first);
    Session session(graph, {.seed = best_.seed, .backend = Backend::kReference});
    for (const auto& [name, value] : session.variables())
      if (const auto found = best_.values.find(name); found != best_.values.end())
        session.set_variable(name, found->second);
    session.set_quantization_step(best_.quantization_step);
    RunRequest request{.training = best_.training};
    for (const Output& output : outputs) request.fetches.push_back(graph.output_at(output.name()));
    return session.run(request, feeds_of_first_run(best_, graph)).fetched;
  }

  /// Ends earlier, begins later.
  bool shorten() {
    bool better = false;
    for (bool again = true; again;) {
      again = false;
      for (const Node* node : best_.graph.topological_order()) {
        if (node->inputs().empty()) continue;
        const std::size_t before = best_.graph.size();
        const Output end = const_cast<Node*>(node)->output();
        if (std::vector{end} != best_.graph.outputs() &&
            attempt([&] { return smaller_than(before, part({end}, [](const Node&) { return false; })); })) {
          again = better = true;
          break;
        }
        const std::string name = node->name();
        if (attempt([&] {
              return smaller_than(before,
                                  part(best_.graph.outputs(), [&](const Node& other) { return other.name() == name; }));
            })) {
          again = better = true;
          break;
        }
      }
    }
    return better;
  }

  static GraphCase smaller_than(std::size_t nodes, GraphCase test) {
    if (test.graph.size() >= nodes) fail("not smaller");
    return test;
  }

  template <class Change>
  bool change(const Change& edit) {
    return attempt([&] {
      GraphCase changed = best_.clone();
      edit(changed);
      return changed;
    });
  }

  bool simplify_run() {
    bool better = false;
    for (int threads = 1; threads < best_.threads; ++threads)
      if (change([&](GraphCase& test) { test.threads = threads; })) {
        better = true;
        break;
      }
    if (best_.runs > 1) better = change([](GraphCase& test) { test.runs = 1; }) || better;
    if (best_.training) better = change([](GraphCase& test) { test.training = false; }) || better;
    if (best_.fetches_all) better = change([](GraphCase& test) { test.fetches_all = false; }) || better;
    if (best_.quantization_step > 0) better = change([](GraphCase& test) { test.quantization_step = 0; }) || better;
    return better;
  }

  /// The case under a graph JSON that was edited; values are cropped to the shapes there.
  GraphCase under(const Json& json) {
    GraphCase result = best_.clone();
    result.graph = graph_from_json(json.dump(), "shrunk");
    for (auto& [name, value] : result.values)
      if (const Node* node = result.graph.find(name))
        if (node->output_specs()[0].shape != value.shape()) value = cropped(value, node->output_specs()[0].shape);
    return result;
  }

  bool plainer_attributes() {
    bool better = false;
    const Json json = Json::parse(graph_to_json(best_.graph));
    for (std::size_t i = 0; i < json["nodes"].size(); ++i) {
      const Json attributes = json["nodes"][i].value("attrs", Json::object());
      for (const auto& [key, value] : attributes.items()) {
        if (key == "shape" || key == "dtype" || key == "value" || key == "trainable") continue;
        better = attempt([&, name = key] {
                   Json edited = Json::parse(graph_to_json(best_.graph));
                   if (edited["nodes"][i]["attrs"].erase(name) == 0) fail("gone already");
                   return under(edited);
                 }) ||
                 better;
      }
    }
    return better;
  }

  static bool is_source(const Json& node) {
    return node["op"] == "Placeholder" || node["op"] == "Variable" || node["op"] == "Constant";
  }

  /// Equal extents shrink together: all of them, or those on one axis.
  bool smaller_extents() {
    bool better = false;
    std::set<std::int64_t, std::greater<>> extents;
    for (const Node* node : best_.graph.nodes())
      if (node->inputs().empty())
        for (const std::int64_t e : node->output_specs()[0].shape.extents()) extents.insert(e);
    for (const std::int64_t from : extents)
      for (int axis = -1; axis < 4; ++axis)
        for (const std::int64_t to : {std::int64_t{1}, std::int64_t{2}, from / 2, from - 1})
          if (to >= 1 && to < from) better = attempt([&] { return with_extent(from, to, axis); }) || better;
    return better;
  }

  GraphCase with_extent(std::int64_t from, std::int64_t to, int only_axis) {
    Json json = Json::parse(graph_to_json(best_.graph));
    bool any = false;
    for (Json& node : json["nodes"]) {
      if (!is_source(node) || !node.contains("attrs") || !node["attrs"].contains("shape")) continue;
      Json& shape = node["attrs"]["shape"];
      for (std::size_t axis = 0; axis < shape.size(); ++axis)
        if (shape[axis] == from && (only_axis < 0 || static_cast<std::size_t>(only_axis) == axis)) {
          shape[axis] = to;
          any = true;
        }
    }
    if (!any) fail("no such extent");
    return under(json);
  }

  GraphCase best_;
  const Fails& fails_;
  Clock::time_point end_;
};

}  // namespace

GraphCase shrink(const GraphCase& test, const Finding& finding, const Fails& fails, double seconds) {
  Shrinker shrinker(test, fails, seconds);
  shrinker.isolate(finding.nodes);
  return shrinker.run();
}

}  // namespace miniqat::fuzz
