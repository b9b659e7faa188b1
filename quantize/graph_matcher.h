#pragma once

#include <array>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"
#include "layers/reshape.h"
#include "quantize/fake_quant.h"

namespace miniqat::quantize {

struct Pattern;
/// Patterns are shared: one may be part of several, and its address is what a match is asked for.
using PatternRef = std::shared_ptr<const Pattern>;

/// The form of a piece of graph, seen from a tensor upwards: the op that produces it, and that op's inputs. Plain data;
/// knows structure only, never names. Types are those of kinds (Kind::kType) or others that live as long.
struct Pattern {
  enum class Inputs {
    kUnspecified,
    /// Inputs and patterns fit one to one.
    kOrdered,
    /// Inputs fit the patterns in any order; every order that fits is a match of its own.
    kUnordered,
    /// Any number of inputs, which all fit the one pattern given.
    kAll,
  };

  /// The producer's type is one of these; empty for any.
  std::vector<std::string_view> types = {};
  Inputs order = Inputs::kUnspecified;
  std::vector<PatternRef> inputs = {};
  int max_rank = Shape::kMaxRank;
  /// When not empty: the tensor fits one of these, and nothing above counts.
  std::vector<PatternRef> alternatives = {};
};

PatternRef anything();
PatternRef op(std::vector<std::string_view> types);
PatternRef op(std::vector<std::string_view> types, std::vector<PatternRef> inputs);
PatternRef op_unordered(std::vector<std::string_view> types, std::vector<PatternRef> inputs);
PatternRef op_over_all(std::vector<std::string_view> types, PatternRef every_input);
PatternRef one_of(std::vector<PatternRef> alternatives);
/// `pattern`, but only for tensors of at most that rank.
PatternRef rank_up_to(int max_rank, const PatternRef& pattern);

/// One way to lay a pattern over a graph.
class Match {
 public:
  /// The tensor that fitted the pattern, or one whose node is null when the pattern had no part in this match.
  Output tensor(const PatternRef& pattern) const;
  /// The producer of tensor(), or null.
  Node* node(const PatternRef& pattern) const { return tensor(pattern).node; }

 private:
  friend class GraphMatcher;
  std::map<const Pattern*, Output> tensors_;
};

/// Finds patterns. The matcher looks through nodes of the transparent types (by their input 0) anywhere, so a graph
/// with quantizers matches as it did without. The graph may not change while this is used.
class GraphMatcher {
 public:
  explicit GraphMatcher(const Graph& graph, std::vector<std::string_view> transparent = {});
  /// All matches: by their last node in topological order, then by the order of alternatives.
  std::vector<Match> find(const PatternRef& pattern) const;

 private:
  std::vector<Match> match(const PatternRef& pattern, Output tensor) const;
  std::vector<Match> match_inputs(const Pattern& pattern, const Node& node) const;

  std::vector<Node*> order_;
  std::vector<std::string_view> transparent_;
};

bool is_one_of(std::string_view type, std::span<const std::string_view> types);
/// What to look through.
inline constexpr std::array<std::string_view, 1> kIdentity = {layers::Identity::kType};
inline constexpr std::array<std::string_view, 2> kQuantizerOrIdentity = {FakeQuant::kType, layers::Identity::kType};
/// The first tensor upwards, by input 0, whose producer is of none of these types.
Output source_through(Output tensor, std::span<const std::string_view> types);
/// The uses of a tensor, where nodes of these types that take it as input 0 are followed (after their own use) by the
/// uses of what they make of it.
std::vector<Use> uses_through(Output tensor, std::span<const std::string_view> types);

}  // namespace miniqat::quantize
