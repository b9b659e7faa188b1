#include "cli/display/quantize_table.h"

#include "cli/display/text_table.h"
#include "cli/with_flags.h"
#include "core/error.h"
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
  std::vector<TableLine> lines = {{"network", "validation", "test", "parameter bytes", "bit operations"}};
  for (const QuantizedRow& row : result.rows)
    lines.push_back({row.name + (row.name == result.chosen ? " *" : ""), percent(row.accuracies.validation->accuracy()),
                     percent(row.accuracies.test->accuracy()), in_thousands(row.cost.parameter_bytes),
                     in_thousands(row.cost.bit_operations)});
  return aligned(lines, 1);
}

std::string quantize_conclusion(const QuantizationResult& result) {
  const char* why = !result.training_failed.empty() ? "because the training failed"
                    : result.chosen == "calibrated" ? "because training made it no better on the validation part"
                                                    : "the best one on the validation part";
  std::string text = concat("* the run holds the ", result.chosen, " network, ", why, "\n");
  if (!result.no_integers.empty()) text += concat("no integers: ", printable(with_flags(result.no_integers)), "\n");
  return text;
}

}  // namespace miniqat::cli
