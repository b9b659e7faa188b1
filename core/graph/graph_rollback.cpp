#include <memory>
#include <unordered_map>
#include <utility>

#include "core/graph/graph.h"
#include "core/text/error.h"

namespace miniqat {

GraphRollback::GraphRollback(Graph& graph)
    : graph_(&graph),
      slots_(graph.nodes_.size()),
      first_(graph.order_.first_),
      next_number_(graph.next_number_),
      outputs_(graph.outputs_),
      revision_(graph.revision_) {
  if (graph.rollback_) fail("a graph can be rolled back to one moment only");
  nodes_.reserve(graph.size());
  for (const auto& node : graph.nodes_)
    if (node) nodes_.push_back({node.get(), node->op_, node->inputs_, node->uses_, node->place_, node->slot_});
  graph.rollback_ = this;
}

GraphRollback::~GraphRollback() {
  if (!graph_) return;
  graph_->rollback_ = nullptr;
  restore();
}

void GraphRollback::commit() {
  graph_->rollback_ = nullptr;
  graph_ = nullptr;
  erased_.clear();
}

void GraphRollback::restore() noexcept {
  std::unordered_map<const Node*, std::unique_ptr<Node>> nodes;
  for (auto* owners : {&graph_->nodes_, &erased_})
    for (std::unique_ptr<Node>& node : *owners)
      if (node) nodes.emplace(node.get(), std::move(node));

  graph_->nodes_.clear();
  graph_->nodes_.resize(slots_);
  graph_->owned_.clear();
  graph_->by_name_.clear();
  for (Former& former : nodes_) {
    Node& node = *former.node;
    node.op_ = std::move(former.op);
    node.inputs_ = std::move(former.inputs);
    node.uses_ = std::move(former.uses);
    node.place_ = former.place;
    node.slot_ = former.slot;
    graph_->owned_.insert(&node);
    graph_->by_name_.emplace(node.name_, &node);
    graph_->nodes_[node.slot_] = std::move(nodes.at(&node));
  }
  graph_->order_.first_ = first_;
  graph_->next_number_ = std::move(next_number_);
  graph_->outputs_ = std::move(outputs_);
  graph_->revision_ = revision_;
}

}  // namespace miniqat
