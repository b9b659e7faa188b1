#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/quantize/toy_graph.h"

namespace miniqat::testing {

/// A toy graph and what its rewrite does: a row of a table.
struct RewriteCase {
  std::string name;
  /// ToyGraph's.
  std::string chains;
  quantize::RewriteOptions options = {};
  /// All quantizers, in the order in which a rewrite for training inserts them, each a line as described() takes.
  Names quantizers = {};
  /// Lines of the report, as lines_of() writes them. Those of edges, layers and batch norms are some of all there are;
  /// remarks and warnings are all.
  Names report = {};
  /// A second report names the variable that layers share, the first one a copy that one of them reads.
  bool reads_copies = false;
};

/// "a/Relu -> b/Conv2D: quantized: a/act_quant" for each edge, "a/Conv2D: matched: layer: ..." for each layer,
/// "a/BatchNorm: not folded: ..." for each batch norm, "note: ..." and "warning: ...".
Names lines_of(const quantize::RewriteReport& report);

/// "setting: text" of each.
Names lines_of(const std::vector<quantize::SettingConflict>& conflicts);

/// Rewrites the graph for training and compares with the row. Besides, for each graph: a second rewrite with the same
/// options changes nothing, finds no conflict and reports the same layers; the graph is written and read back; the
/// graph for evaluation is the same made of the original or of the training graph; strict refuses it and leaves it
/// alone, or changes nothing.
void expect_rewrite(const RewriteCase& row);

/// A second rewrite with other options: a row of a table.
struct SecondRewrite {
  std::string name;
  std::string chains;
  quantize::RewriteOptions first, second;
  /// All conflicts, "setting: text"; or, in words without a colon, the settings that they name.
  Names conflicts = {};
};

/// The second one changes nothing, and says so.
void expect_conflicts(const SecondRewrite& row);

/// What strict says of a graph; empty if it accepts it. Another rewrite than an accepted one leaves the graph alone.
std::string strict_refusal(const Graph& graph, quantize::RewriteOptions options = {});

/// Calls check(row) for each, with its name in failures.
template <class Row>
void for_rows(const std::vector<Row>& rows, void (*check)(const Row& row)) {
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name + ": " + row.chains);
    check(row);
  }
}

}  // namespace miniqat::testing
