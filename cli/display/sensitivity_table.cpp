#include "cli/display/sensitivity_table.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "cli/display/text_table.h"
#include "core/text/error.h"
#include "training/percent.h"

namespace miniqat::cli {

using namespace training;

namespace {

std::string number(double value, const char* format) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

void add_figures(TableLine& line, const Measurement& measurement) {
  line.push_back(number(measurement.loss_increase, "%+.4f"));
  line.push_back(percent(measurement.evaluation.accuracy()));
  line.push_back(measurement.snr_db ? number(*measurement.snr_db, "%.1f") : "-");
}

std::string name_of(const ChosenBits& choice) {
  return choice.uniform_bits ? concat(*choice.uniform_bits, " bits for all") : "bits by layer";
}

/// The competitors; nothing where there is only one.
std::string candidates_text(const Sensitivity& sensitivity) {
  if (sensitivity.candidates.size() < 2) return "";
  std::string text;
  for (const ChosenBits& one : sensitivity.candidates)
    text += concat(text.empty() ? "" : ", ", name_of(one), " ", number(one.measured.loss_increase, "%+.4f"));
  return concat("measured within the budget: ", text, "; taken: ", name_of(*sensitivity.choice), "\n");
}

}  // namespace

std::string sensitivity_table(const Sensitivity& sensitivity, std::size_t rows) {
  struct Row {
    const QuantizerSensitivity* quantizer;
    const Measurement* measurement;
  };
  std::vector<Row> order;
  for (const QuantizerSensitivity& one : sensitivity.quantizers)
    for (const Measurement& measurement : one.alone) order.push_back({&one, &measurement});
  std::ranges::stable_sort(order, std::greater(), [](const Row& row) { return row.measurement->loss_increase; });
  const std::size_t shown = rows == 0 ? order.size() : std::min(rows, order.size());
  std::vector<TableLine> lines = {{"layer", "quantized alone", "bits", "loss increase", "accuracy", "SNR (dB)"}};
  for (const Row& row : std::span(order).first(shown)) {
    TableLine& line = lines.emplace_back(TableLine{row.quantizer->layer, row.quantizer->kind()});
    line.push_back(concat(row.measurement->bits));
    add_figures(line, *row.measurement);
  }
  std::string text = aligned(lines, 2);
  if (shown < order.size()) text += concat("... ", counted(order.size() - shown, "row"), " more with --verbose\n");
  return text;
}

std::string together_table(const Sensitivity& sensitivity) {
  std::vector<TableLine> lines = {
      {"all layers", "loss", "increase", "accuracy", "SNR (dB)"},
      {"float", number(sensitivity.in_float.loss, "%.4f"), "-", percent(sensitivity.in_float.accuracy()), "-"}};
  const auto add = [&](const std::string& name, const Measurement& measurement) {
    add_figures(lines.emplace_back(TableLine{name, number(measurement.evaluation.loss, "%.4f")}), measurement);
  };
  for (const Measurement& measurement : sensitivity.together) add(concat(measurement.bits, " bits"), measurement);
  if (sensitivity.choice) add("chosen widths", sensitivity.choice->measured);
  return aligned(lines, 1);
}

std::string choice_text(const Sensitivity& sensitivity) {
  const ChosenBits& choice = *sensitivity.choice;
  char text[256];
  std::snprintf(
      text, sizeof text,
      "\nchosen widths: %.2f bits for weights (%ld bytes), %.2f for activations; loss %+.4f predicted, %+.4f measured\n",
      choice.average_weight_bits, static_cast<long>(choice.weight_bytes), choice.average_activation_bits,
      choice.predicted_loss_increase, choice.measured.loss_increase);
  return text + candidates_text(sensitivity);
}

}  // namespace miniqat::cli
