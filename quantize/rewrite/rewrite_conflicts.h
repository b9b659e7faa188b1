#pragma once

#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/graph/graph.h"
#include "quantize/rewrite/rewrite.h"
#include "quantize/rewrite/verdicts.h"

namespace miniqat::quantize {

/// The work that a rewrite finds done: the names of quantizers and of batch norms that are folded and still there.
class DoneBefore {
 public:
  explicit DoneBefore(const Graph& graph);

  /// Differences between an earlier rewrite of the graph and the options. Things that only users make (a quantizer with
  /// a range of another kind than the rewrite's) are not compared, and neither are settings without a meaning under
  /// `is_training`. A scope is contradicted by quantizers outside of it when this rewrite has inserted none: scope
  /// after scope may be rewritten with settings of its own.
  std::vector<SettingConflict> conflicts(const Graph& graph, const Verdicts& verdicts, const RewriteOptions& options,
                                         bool is_training) const;

 private:
  std::unordered_set<std::string> quantizers_;
  /// With how they are folded.
  std::vector<std::pair<std::string, BnFold>> batch_norms_;
};

}  // namespace miniqat::quantize
