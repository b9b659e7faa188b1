#include "cli/display/quantize_table.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "cli/display/text_table.h"
#include "cli/with_flags.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "training/percent.h"

namespace miniqat::cli {

using namespace training;

namespace {

/// 1234567 as "1,234,567".
std::string in_thousands(std::int64_t count) {
  std::string text = std::to_string(count);
  for (std::size_t place = text.size(); place > 3;) text.insert(place -= 3, ",");
  return text;
}

}  // namespace

std::string quantize_table(const QuantizationResult& result) {
  // One that was measured knows its classes; rows of finished stages know the figures only.
  const bool balanced =
      result.by_balanced_accuracy || std::ranges::any_of(result.rows, [](const QuantizedRow& row) {
        return row.accuracies.validation->has_uneven_classes() || row.accuracies.test->has_uneven_classes();
      });
  TableLine head = {"network"};
  for (const char* part : {"validation", "test"}) {
    head.emplace_back(part);
    if (balanced) head.emplace_back("balanced");
  }
  for (const char* cost : {"parameter bytes", "bit operations"}) head.emplace_back(cost);
  std::vector<TableLine> lines = {std::move(head)};
  for (const QuantizedRow& row : result.rows) {
    TableLine line = {row.name + (row.name == result.chosen ? " *" : "")};
    for (const std::optional<Evaluation>& part : {row.accuracies.validation, row.accuracies.test}) {
      line.push_back(percent(part->accuracy()));
      if (balanced) line.push_back(part->balanced_accuracy ? percent(*part->balanced_accuracy) : "-");
    }
    line.push_back(in_thousands(row.cost.parameter_bytes));
    line.push_back(in_thousands(row.cost.bit_operations));
    lines.push_back(std::move(line));
  }
  return aligned(lines, 1);
}

std::string quantize_conclusion(const QuantizationResult& result) {
  const char* why = !result.training_failed.empty() ? "because the training failed"
                    : result.chosen == "calibrated" ? "because training made it no better on the validation part"
                                                    : "the best one on the validation part";
  const bool chose = result.training_failed.empty() && result.by_balanced_accuracy;
  std::string text =
      concat("* the run holds the ", result.chosen, " network, ", why, chose ? ", by balanced accuracy" : "", "\n");
  if (!result.no_integers.empty()) text += concat("no integers: ", printable(with_flags(result.no_integers)), "\n");
  return text;
}

}  // namespace miniqat::cli
