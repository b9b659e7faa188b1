#include <algorithm>
#include <cmath>
#include <unordered_set>
#include <vector>

#include "core/graph/graph.h"

namespace miniqat {
namespace {

/// Between neighbours at either end of the order, for what comes between them later.
constexpr std::int64_t kStep = std::int64_t{1} << 20;
constexpr int kLabelBits = 62;
/// A stretch of 2^i labels is sparse with at most (2 / kOverflow)^i nodes.
constexpr double kOverflow = 1.5;

}  // namespace

bool NodeOrder::is_before(const Node& a, const Node& b) { return a.place_.label < b.place_.label; }

void NodeOrder::insert(Node& node, Node* last_input) {
  if (last_input) return insert_after(node, *last_input);
  node.place_ = {.before = nullptr, .after = first_, .label = first_ ? first_->place_.label - kStep : 0};
  if (first_) first_->place_.before = &node;
  first_ = &node;
}

void NodeOrder::erase(Node& node) {
  const NodePlace& place = node.place_;
  (place.before ? place.before->place_.after : first_) = place.after;
  if (place.after) place.after->place_.before = place.before;
}

void NodeOrder::insert_after(Node& node, Node& place) {
  Node* next = place.place_.after;
  if (next && next->place_.label - place.place_.label < 2) make_room_after(place);
  const std::int64_t label = place.place_.label;
  node.place_ = {
      .before = &place, .after = next, .label = next ? label + (next->place_.label - label) / 2 : label + kStep};
  place.place_.after = &node;
  if (next) next->place_.before = &node;
}

void NodeOrder::make_room_after(Node& place) {
  Node *first = &place, *last = &place;
  std::int64_t count = 1;
  for (int bits = 1; bits <= kLabelBits; ++bits) {
    const std::int64_t mask = (std::int64_t{1} << bits) - 1;
    const std::int64_t low = place.place_.label & ~mask, high = low | mask;
    for (; first->place_.before && first->place_.before->place_.label >= low; ++count) first = first->place_.before;
    for (; last->place_.after && last->place_.after->place_.label <= high; ++count) last = last->place_.after;
    const std::int64_t room = (mask + 1) / count;
    if (room < 4 || static_cast<double>(count) > std::pow(2 / kOverflow, bits)) continue;
    for (std::int64_t i = 0; i < count; ++i, first = first->place_.after) first->place_.label = low + i * room;
    return;
  }
}

bool NodeOrder::bring_before(Node& producer, Node& consumer) {
  if (&producer == &consumer) return false;
  if (is_before(producer, consumer)) return true;
  std::vector<Node*> reached = {&consumer};
  std::unordered_set<const Node*> seen = {&consumer};
  for (std::size_t i = 0; i < reached.size(); ++i)
    for (const auto& uses : reached[i]->uses_)
      for (const Use& use : uses) {
        if (use.node == &producer) return false;
        if (is_before(*use.node, producer) && seen.insert(use.node).second) reached.push_back(use.node);
      }
  std::ranges::sort(reached, [](const Node* a, const Node* b) { return is_before(*a, *b); });
  Node* place = &producer;
  for (Node* node : reached) {
    erase(*node);
    insert_after(*node, *place);
    place = node;
  }
  return true;
}

}  // namespace miniqat
