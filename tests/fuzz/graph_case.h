#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/session.h"
#include "core/graph/graph.h"

namespace miniqat::fuzz {

/// A graph, numbers for it, and how it is run.
struct GraphCase {
  /// Its float outputs are what is differentiated, each times numbers of its own.
  Graph graph;
  /// Values of placeholders and variables by node name. What is missing is made up from `seed` and the name: numbers
  /// between -1 and 1 for placeholders, classes for labels, a variable's own initializer.
  NamedTensors values = {};
  std::uint64_t seed = 1;
  int threads = 1;
  bool training = true;
  /// Half of all cases multiply integers where layers can.
  Arithmetic arithmetic() const { return seed % 2 == 0 ? Arithmetic::kSimulated : Arithmetic::kInteger; }
  /// Half of all cases round to bfloat16, an eighth gradients to bytes, on processors that multiply these.
  FactorRounding rounding() const;
  /// Runs, one after the other, and the quantization step before the first.
  int runs = 1;
  std::int64_t quantization_step = 0;
  /// Fetches every output of `graph` that is no view of a feed: fewer nodes are then fused.
  bool fetches_all = false;

  GraphCase clone() const;
  /// "3 nodes, 2 threads, step 5, training, ..."
  std::string text() const;
};

/// What went wrong in a case.
struct Finding {
  std::string text;
  /// What stays the same when a case shrinks: "Conv2D: the gradient of input 1".
  std::string kind;
  /// The nodes of the step where, by name; none when it is no step's.
  std::vector<std::string> nodes;
};

/// Sums over a run of the program.
struct Counts {
  std::int64_t steps = 0;
  std::int64_t compared = 0;
  std::int64_t vague = 0;
};

/// Runs the case on the fast backend, judged step by step (bench/judge/step_judge.h). Nothing when all is well.
/// Throws Error for a case that cannot be run at all.
std::optional<Finding> judge(const GraphCase& test, Counts* counts = nullptr);

/// The graph with its loss, named "loss": one row of numbers.
Graph with_loss(const GraphCase& test);

/// What the case's first run is fed; `graph` is with_loss() of it.
Feeds feeds_of_first_run(const GraphCase& test, const Graph& graph);

/// Writes DIR/NAME.json (graph with loss), NAME.feeds.safetensors and NAME.variables.safetensors, which `miniqat run`
/// takes, the settings in the metadata of the feeds. Returns the command that shows the difference.
std::string save(const GraphCase& test, const std::filesystem::path& directory, const std::string& name);
/// What save() wrote, by the path of NAME.json.
GraphCase load(const std::filesystem::path& path);

}  // namespace miniqat::fuzz
