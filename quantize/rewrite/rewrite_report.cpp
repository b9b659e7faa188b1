#include "quantize/rewrite/rewrite_report.h"

#include <algorithm>
#include <array>

#include "core/text/error.h"

namespace miniqat::quantize {
namespace {

constexpr std::array<std::string_view, 6> kStatusNames = {"quantized", "fused",      "passed through",
                                                          "input",     "statistics", "left float"};

/// Left-aligned columns, two spaces apart; the last one ragged.
std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.empty() ? 0 : rows.front().size());
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += "  " + row[i] + (i + 1 < row.size() ? std::string(widths[i] - row[i].size(), ' ') : "");
    text += line + "\n";
  }
  return text;
}

}  // namespace

std::string_view name_of(EdgeStatus status) { return kStatusNames[static_cast<std::size_t>(status)]; }

std::string RewriteReport::notes() const {
  std::string text;
  for (const std::string& warning : warnings) text += "warning: " + warning + "\n";
  for (const std::string& remark : remarks) text += "note: " + remark + "\n";
  return text;
}

std::string RewriteReport::text() const {
  std::size_t matched = 0;
  std::size_t skipped = 0;
  std::vector<std::vector<std::string>> norm_rows;
  for (const BatchNormReport& norm : batch_norms)
    norm_rows.push_back({norm.batch_norm, norm.folded ? "folded" : "not folded", norm.text});
  std::vector<std::vector<std::string>> layer_rows;
  std::vector<std::vector<std::string>> edge_rows;
  for (const MatchReport& match : matches) {
    if (!match.statistics) ++(match.matched ? matched : skipped);
    layer_rows.push_back({match.layer,
                          match.matched      ? "matched"
                          : match.statistics ? "statistics"
                                             : "skipped",
                          match.text});
  }
  for (const EdgeReport& edge : edges)
    edge_rows.push_back({edge.tensor, "-> " + edge.consumer, std::string(name_of(edge.status)), edge.reason});

  const auto folded = static_cast<std::size_t>(std::ranges::count(batch_norms, true, &BatchNormReport::folded));
  std::string text = concat(counted(matched, "layer"), " matched, ", skipped, " skipped; ",
                            batch_norms.empty() ? "" : counted(folded, "batch norm") + " folded; ",
                            counted(inserted.size(), "quantizer"), " inserted\n", notes());
  if (!norm_rows.empty()) text += "\nbatch norms\n" + table(norm_rows);
  if (!layer_rows.empty()) text += "\nlayers\n" + table(layer_rows);
  if (!edge_rows.empty()) text += "\nedges\n" + table(edge_rows);
  return text;
}

}  // namespace miniqat::quantize
