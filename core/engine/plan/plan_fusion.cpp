#include "core/engine/plan/plan_fusion.h"

#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "core/graph/fusion.h"

namespace miniqat {
namespace {

class Fuser final : public FusionScope {
 public:
  Fuser(std::vector<SelectedNode> nodes, const PlanRequest& request) : request_(request), nodes_(std::move(nodes)) {
    for (const SelectedNode& selected : nodes_) {
      by_node_[selected.node] = &selected;
      for (std::size_t k = 0; k < selected.inputs.size(); ++k)
        readers_[key(selected.inputs[k])].push_back({const_cast<Node*>(selected.node), static_cast<int>(k)});
    }
    for (const Output& fetch : request.fetches) kept_.insert(key(fetch));
    if (request.gradients_of) kept_.insert(key(*request.gradients_of));
  }

  std::vector<SelectedNode> fuse() {
    std::unordered_map<const Node*, SelectedNode> by_last;
    for (const SelectedNode& selected : nodes_) {
      if (taken_.contains(selected.node)) continue;
      const auto* fuses = as<FusesWithNext>(*selected.op);
      if (fuses == nullptr) continue;
      std::optional<Fusion> fusion = fuses->fuse(*selected.node, *this);
      if (!fusion) continue;
      taken_.insert(fusion->nodes.begin(), fusion->nodes.end());
      const Node* last = fusion->nodes.back();
      by_last.emplace(last, fused(std::move(*fusion)));
    }
    std::vector<SelectedNode> result;
    for (SelectedNode& selected : nodes_) {
      if (const auto found = by_last.find(selected.node); found != by_last.end())
        result.push_back(std::move(found->second));
      else if (!taken_.contains(selected.node))
        result.push_back(std::move(selected));
    }
    return in_order(std::move(result));
  }

  std::span<const Output> inputs(const Node& node) const override { return by_node_.at(&node)->inputs; }

  const Node* only_reader(Output output) const override {
    const auto found = readers_.find(key(output));
    if (found == readers_.end() || found->second.size() != 1 || kept_.contains(key(output))) return nullptr;
    const Use& use = found->second.front();
    return use.input <= 1 && !taken_.contains(use.node) ? use.node : nullptr;
  }

  bool is_read(Output output) const override { return readers_.contains(key(output)) || kept_.contains(key(output)); }

  bool differentiates() const override { return request_.gradients_of.has_value(); }

 private:
  using Key = std::pair<const Node*, int>;
  static Key key(Output output) { return {output.node, output.index}; }

  /// Producers first again: of a fused op others may take what one of its first nodes gave.
  static std::vector<SelectedNode> in_order(std::vector<SelectedNode> nodes) {
    std::unordered_map<const Node*, std::size_t> producer;
    for (std::size_t i = 0; i < nodes.size(); ++i)
      for (const Output& output : nodes[i].outputs) producer[output.node] = i;
    std::vector<SelectedNode> result;
    std::vector<bool> visited(nodes.size(), false);
    const auto visit = [&](const auto& self, std::size_t i) -> void {
      if (visited[i]) return;
      visited[i] = true;
      for (const Output& input : nodes[i].inputs) self(self, producer.at(input.node));
      result.push_back(std::move(nodes[i]));
    };
    for (std::size_t i = 0; i < visited.size(); ++i) visit(visit, i);
    return result;
  }

  SelectedNode fused(Fusion fusion) const {
    SelectedNode selected{.node = fusion.named_after,
                          .op = fusion.op.get(),
                          .traits = fusion.op->traits(),
                          .inputs = std::move(fusion.inputs),
                          .outputs = std::move(fusion.outputs),
                          .members = std::move(fusion.nodes),
                          .member_inputs = {},
                          .fused = std::move(fusion.op)};
    for (const Node* member : selected.members) selected.member_inputs.push_back(by_node_.at(member)->inputs);
    return selected;
  }

  const PlanRequest& request_;
  std::vector<SelectedNode> nodes_;
  std::unordered_map<const Node*, const SelectedNode*> by_node_;
  std::map<Key, std::vector<Use>> readers_;
  std::set<Key> kept_;
  std::unordered_set<const Node*> taken_;
};

}  // namespace

std::vector<SelectedNode> fuse_nodes(std::vector<SelectedNode> nodes, const PlanRequest& request) {
  return Fuser(std::move(nodes), request).fuse();
}

}  // namespace miniqat
