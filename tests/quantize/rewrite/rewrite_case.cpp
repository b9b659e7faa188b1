#include "tests/quantize/rewrite/rewrite_case.h"

#include <algorithm>

#include "core/graph/graph_json.h"
#include "core/text/error.h"
#include "quantize/rewrite/rewrite_report.h"
#include "tests/errors.h"

namespace miniqat::testing {
namespace {

using quantize::RewriteReport;

Names texts_of(const std::vector<quantize::MatchReport>& matches) {
  Names texts;
  for (const quantize::MatchReport& match : matches) texts.push_back(match.layer + ": " + match.text);
  return texts;
}

bool must_be_in_rows(const std::string& line) { return line.starts_with("note: ") || line.starts_with("warning: "); }

void expect_said(const Names& said, const Names& expected) {
  std::string all;
  for (const std::string& line : said) all += line + '\n';
  for (const std::string& line : expected)
    EXPECT_EQ(std::ranges::count(said, line), 1) << line << "\nis not in\n" << all;
  for (const std::string& line : said)
    EXPECT_TRUE(!must_be_in_rows(line) || std::ranges::count(expected, line) == 1) << line;
}

bool is_partly_float(const RewriteReport& report) {
  return std::ranges::any_of(report.remarks, [](const std::string& remark) {
    return remark.find("left float") != std::string::npos || remark.starts_with("no layer is in scope");
  });
}

/// Quantizers of the user's own may be otherwise than asked.
bool has_quantizers(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const Node* node) { return node->type() == "FakeQuant"; });
}

/// What all quantizers have is no layer's own.
void expect_nothing_own(const RewriteReport& report) {
  for (const quantize::MatchReport& match : report.matches)
    for (const char* setting : {"symmetric", "learned", "all values", "decay", "per channel"})
      EXPECT_EQ(match.text.find(setting), std::string::npos) << match.text;
}

void expect_nothing_new(Graph& graph, const RewriteReport& first, const RewriteCase& row, bool may_conflict) {
  const std::string once = graph_to_json(graph);
  const std::uint64_t revision = graph.revision();
  EXPECT_EQ(graph_to_json(graph_from_json(once)), once);
  const RewriteReport second = create_training_graph(graph, row.options);
  EXPECT_EQ(second.inserted, Names{});
  EXPECT_TRUE(row.reads_copies || texts_of(second.matches) == texts_of(first.matches)) << second.text();
  EXPECT_TRUE(may_conflict || second.conflicts.empty()) << lines_of(second.conflicts).front();
  EXPECT_EQ(graph_to_json(graph), once);
  EXPECT_EQ(graph.revision(), revision) << "compiled plans stay valid";
}

}  // namespace

Names lines_of(const RewriteReport& report) {
  Names lines;
  for (const quantize::EdgeReport& edge : report.edges)
    lines.push_back(
        concat(edge.tensor, " -> ", edge.consumer, ": ", quantize::name_of(edge.status), ": ", edge.reason));
  for (const quantize::MatchReport& match : report.matches) {
    const char* fate = match.matched ? ": matched: " : match.statistics ? ": statistics: " : ": skipped: ";
    lines.push_back(match.layer + fate + match.text);
  }
  for (const quantize::BatchNormReport& norm : report.batch_norms)
    lines.push_back(norm.batch_norm + (norm.folded ? ": folded: " : ": not folded: ") + norm.text);
  for (const std::string& remark : report.remarks) lines.push_back("note: " + remark);
  for (const std::string& warning : report.warnings) lines.push_back("warning: " + warning);
  return lines;
}

Names lines_of(const std::vector<quantize::SettingConflict>& conflicts) {
  Names lines;
  for (const quantize::SettingConflict& conflict : conflicts) lines.push_back(conflict.setting + ": " + conflict.text);
  return lines;
}

void expect_rewrite(const RewriteCase& row) {
  ToyGraph toy(row.chains);
  const bool own_quantizers = has_quantizers(toy.graph);
  Graph evaluated = toy.graph.clone();
  const std::string refusal = strict_refusal(toy.graph, row.options);
  const RewriteReport report = create_training_graph(toy.graph, row.options);
  Names names;
  for (const std::string& line : row.quantizers) names.push_back(quantizer_in(line));
  EXPECT_EQ(report.inserted, names);
  EXPECT_EQ(described(toy.graph, row.quantizers), row.quantizers);
  expect_said(lines_of(report), row.report);
  EXPECT_EQ(!refusal.empty(), is_partly_float(report)) << refusal;
  if (row.options.layer_bits.empty() && !own_quantizers) expect_nothing_own(report);
  expect_nothing_new(toy.graph, report, row, own_quantizers);
  create_eval_graph(toy.graph, row.options);
  create_eval_graph(evaluated, row.options);
  const std::string once = graph_to_json(evaluated);
  EXPECT_EQ(graph_to_json(toy.graph), once);
  EXPECT_EQ(create_eval_graph(evaluated, row.options).inserted, Names{});
  EXPECT_EQ(graph_to_json(evaluated), once);
}

void expect_conflicts(const SecondRewrite& row) {
  ToyGraph toy(row.chains);
  create_training_graph(toy.graph, row.first);
  const std::string before = graph_to_json(toy.graph);
  const RewriteReport report = create_training_graph(toy.graph, row.second);
  EXPECT_EQ(report.inserted, Names{});
  EXPECT_EQ(graph_to_json(toy.graph), before);
  Names found = lines_of(report.conflicts);
  if (row.conflicts.empty() || row.conflicts[0].find(':') == std::string::npos) {
    for (std::string& line : found) line = line.substr(0, line.find(':'));
    std::ranges::sort(found);
    found.erase(std::ranges::unique(found).begin(), found.end());
  }
  EXPECT_EQ(found, row.conflicts);
}

std::string strict_refusal(const Graph& graph, quantize::RewriteOptions options) {
  Graph strict = graph.clone(), lenient = graph.clone();
  create_training_graph(lenient, options);
  options.strict = true;
  const std::uint64_t revision = strict.revision();
  const std::string text = error_of([&] { create_training_graph(strict, options); });
  if (text.empty())
    EXPECT_EQ(graph_to_json(strict), graph_to_json(lenient));
  else
    EXPECT_EQ(strict.revision(), revision) << "refused graphs stay as they are";
  return text;
}

}  // namespace miniqat::testing
