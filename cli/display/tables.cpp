#include "cli/display/tables.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "cli/display/terminal.h"
#include "cli/notes.h"
#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "quantize/quantizers.h"
#include "training/figures.h"

namespace miniqat::cli {

using training::Answers;
using training::Hits;
using namespace training;

namespace {

/// The rows of each list that stands for a matrix.
constexpr std::size_t kClassRows = 20;

std::string accuracy_of(const Hits& hits) { return hits.examples == 0 ? "-" : training::percent(hits.accuracy()); }

std::string class_text(const Answers& answers, std::int64_t number) {
  return number < 0 ? "none (NaN)" : name_cell(answers.name(number));
}

std::string matrix_text(const Answers& answers) {
  const bool undecided = answers.undecided() > 0;
  TableLine head = {"label", "accuracy", answers.noun() + "s"};
  for (std::int64_t k = 0; k < answers.classes(); ++k) head.push_back(class_text(answers, k));
  if (undecided) head.push_back(class_text(answers, -1));
  std::vector<TableLine> lines = {std::move(head)};
  for (std::int64_t label = 0; label < answers.classes(); ++label) {
    const Hits& hits = answers.of_class(label);
    TableLine line = {class_text(answers, label), accuracy_of(hits), std::to_string(hits.examples)};
    const auto add = [&](std::int64_t predicted) {
      const std::int64_t count = answers.count(label, predicted);
      line.push_back(count == 0 ? "." : std::to_string(count));
    };
    for (std::int64_t k = 0; k < answers.classes(); ++k) add(k);
    if (undecided) add(-1);
    lines.push_back(std::move(line));
  }
  return "by class; a row is a label, a column a predicted class\n" + aligned(lines, 1);
}

/// Pictures of one class that were taken for another.
struct Confusion {
  std::int64_t label = 0;
  std::int64_t predicted = 0;
  std::int64_t count = 0;
};

/// All confusions, the most frequent first.
std::vector<Confusion> confusions(const Answers& answers) {
  std::vector<Confusion> found;
  for (const auto& [pair, count] : answers.counts())
    if (pair.first != pair.second) found.push_back({.label = pair.first, .predicted = pair.second, .count = count});
  std::ranges::stable_sort(found, std::ranges::greater(), &Confusion::count);
  return found;
}

std::string first_rows(const std::string& what, std::vector<TableLine> lines, std::size_t left) {
  const std::size_t all = lines.size() - 1;
  const std::string part = all > kClassRows ? concat("; the first ", kClassRows, " of ", all) : "";
  lines.resize(std::min(lines.size(), kClassRows + 1));
  return concat(what, part, "\n", aligned(lines, left));
}

std::string worst_classes(const Answers& answers) {
  std::vector<std::pair<std::int64_t, Hits>> classes;
  for (std::int64_t label = 0; label < answers.classes(); ++label)
    if (const Hits& hits = answers.of_class(label); hits.examples > 0) classes.emplace_back(label, hits);
  std::ranges::stable_sort(classes, {}, [](const auto& one) { return one.second.accuracy(); });
  std::vector<TableLine> lines = {{"label", "accuracy", answers.noun() + "s"}};
  for (const auto& [label, hits] : classes)
    lines.push_back({class_text(answers, label), accuracy_of(hits), std::to_string(hits.examples)});
  return first_rows("classes, the worst first", std::move(lines), 1);
}

std::string frequent_confusions(const Answers& answers) {
  std::vector<TableLine> lines = {{"label", "predicted", answers.noun() + "s"}};
  for (const Confusion& one : confusions(answers))
    lines.push_back({class_text(answers, one.label), class_text(answers, one.predicted), std::to_string(one.count)});
  return first_rows("confusions, the most frequent first", std::move(lines), 2);
}

std::string interval(const std::vector<quantize::Range<float>>& ranges) {
  const auto low = std::ranges::min_element(ranges, {}, &quantize::Range<float>::min);
  const auto high = std::ranges::max_element(ranges, {}, &quantize::Range<float>::max);
  return formatted("[%.5g, %.5g]", low->min, high->max);
}

/// "8 bits, weights, narrow, 6 channels".
std::string grid_text(const quantize::FakeQuantAttributes& attributes, bool is_weights, std::size_t channels) {
  std::vector<std::string> words = {concat(attributes.bits, " bits"), is_weights ? "weights" : "activation"};
  std::ranges::copy(quantize::grid_words(attributes), std::back_inserter(words));
  if (channels > 1) words.push_back(counted(channels, "channel"));
  return joined(words);
}

/// "0.25", or "0.25 to 0.5" of several.
template <class Member>
std::string span_text(const std::vector<Affine<float>>& grids, Member member) {
  const auto [low, high] = std::ranges::minmax_element(grids, {}, member);
  const std::string first = formatted("%.6g", (*low).*member), last = formatted("%.6g", (*high).*member);
  return first == last ? first : concat(first, " to ", last);
}

/// 1234567 as "1,234,567".
std::string in_thousands(std::int64_t count) {
  std::string text = std::to_string(count);
  for (std::size_t place = text.size(); place > 3;) text.insert(place -= 3, ",");
  return text;
}

void add_figures(TableLine& line, const Measurement& measurement) {
  line.push_back(formatted("%+.4f", measurement.loss_increase));
  line.push_back(measurement.evaluation.main().text());
  line.push_back(measurement.snr_db ? formatted("%.1f", *measurement.snr_db) : "-");
}

std::string name_of(const ChosenBits& choice) {
  return choice.uniform_bits ? concat(*choice.uniform_bits, " bits for all") : "bits by layer";
}

/// The competitors; nothing where there is only one.
std::string candidates_text(const Sensitivity& sensitivity) {
  if (sensitivity.candidates.size() < 2) return "";
  std::string text;
  for (const ChosenBits& one : sensitivity.candidates)
    text += concat(text.empty() ? "" : ", ", name_of(one), " ", formatted("%+.4f", one.measured.loss_increase));
  return concat("measured within the budget: ", text, "; taken: ", name_of(*sensitivity.choice), "\n");
}

}  // namespace

std::string class_table(const Answers& answers) {
  return answers.classes() <= kMostMatrixClasses ? matrix_text(answers)
                                                 : worst_classes(answers) + frequent_confusions(answers);
}

std::string wrong_table(const Answers& answers) {
  if (answers.wrong().empty()) return concat("no wrong ", answers.noun(), "\n");
  const bool are_files = !answers.wrong().front().file.empty();
  std::vector<TableLine> lines = {{"index", "label", "predicted", "score"}};
  if (are_files) lines[0].insert(lines[0].begin(), "file");
  for (const training::WrongAnswer& answer : answers.wrong()) {
    lines.push_back({std::to_string(answer.index), class_text(answers, answer.label),
                     class_text(answers, answer.predicted),
                     answer.predicted < 0 ? "-" : training::percent(answer.score)});
    if (are_files) lines.back().insert(lines.back().begin(), printable(answer.file));
  }
  return concat(counted(lines.size() - 1, concat("wrong ", answers.noun())), "\n", aligned(lines, are_files ? 1 : 0));
}

std::string target_table(const Evaluation& evaluation, const datasets::Dataset& data) {
  std::vector<TableLine> lines = {{"target", "R^2", "MAE, in its unit"}};
  for (std::size_t k = 0; k < evaluation.by_target.size(); ++k) {
    const TargetErrors& one = evaluation.by_target[k];
    lines.push_back({name_cell(target_name(data, k)), one.r2 ? formatted("%.4g", *one.r2) : "-",
                     formatted("%.4g", one.mean_absolute)});
  }
  return aligned(lines, 1);
}

std::string range_table(std::span<const quantize::CalibratedRange> ranges) {
  std::vector<TableLine> lines = {{"quantizer", "grid", "values", "range"}};
  for (const quantize::CalibratedRange& one : ranges) {
    lines.push_back({one.quantizer, grid_text(one.attributes, one.is_weights, one.set.size()), interval(one.seen),
                     interval(one.set)});
  }
  return aligned(lines, lines.front().size());
}

std::string quantizer_table(std::span<const quantize::QuantizerRange> ranges) {
  std::vector<TableLine> lines = {{"quantizer", "grid", "range", "scale", "zero point"}};
  for (const quantize::QuantizerRange& one : ranges) {
    const std::vector<Affine<float>> grids = one.grids();
    lines.push_back({one.quantizer, grid_text(one.attributes, one.is_weights, grids.size()), interval(one.ranges),
                     span_text(grids, &Affine<float>::scale), span_text(grids, &Affine<float>::zero_point)});
  }
  return aligned(lines, lines.front().size());
}

std::string quantize_table(const QuantizationResult& result) {
  // One that was measured knows its classes; rows of finished stages know the figures only.
  const bool balanced =
      result.by_balanced_accuracy || std::ranges::any_of(result.rows, [](const QuantizedRow& row) {
        return row.accuracies.validation->has_uneven_classes() || row.accuracies.test->has_uneven_classes();
      });
  TableLine head = {"network"};
  const PartResults& first = result.rows.front().accuracies;
  for (const auto& [part, measured] : {std::pair("validation", &*first.validation), {"test", &*first.test}}) {
    // Whoever reads numbers without a percent sign wants to know what they are. A part without anomalies has no AUC.
    const MeasureKind& kind = *measured->main().kind;
    head.push_back(kind.is_share ? part : concat(part, " ", kind.brief));
    if (balanced) head.emplace_back("balanced");
  }
  for (const char* cost : {"parameter bytes", "bit operations"}) head.emplace_back(cost);
  std::vector<TableLine> lines = {std::move(head)};
  for (const QuantizedRow& row : result.rows) {
    TableLine line = {row.name + (row.name == result.chosen ? " *" : "")};
    for (const std::optional<Evaluation>& part : {row.accuracies.validation, row.accuracies.test}) {
      line.push_back(part->main().text());
      const std::optional<double> share = part->find("balanced_accuracy");
      if (balanced) line.push_back(share ? percent(*share) : "-");
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

std::string sensitivity_table(const Sensitivity& sensitivity, std::size_t rows) {
  struct Row {
    const QuantizerSensitivity* quantizer;
    const Measurement* measurement;
  };
  std::vector<Row> order;
  for (const QuantizerSensitivity& one : sensitivity.quantizers)
    for (const Measurement& measurement : one.alone) order.push_back({&one, &measurement});
  std::ranges::stable_sort(order, std::greater(), [](const Row& row) {
    const double increase = row.measurement->loss_increase;
    return std::isnan(increase) ? -std::numeric_limits<double>::infinity() : increase;
  });
  const std::size_t shown = rows == 0 ? order.size() : std::min(rows, order.size());
  const char* measure = sensitivity.in_float.main().kind->brief;
  std::vector<TableLine> lines = {{"layer", "quantized alone", "bits", "loss increase", measure, "SNR (dB)"}};
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
      {"all layers", "loss", "increase", sensitivity.in_float.main().kind->brief, "SNR (dB)"},
      {"float", formatted("%.4f", sensitivity.in_float.loss), "-", sensitivity.in_float.main().text(), "-"}};
  const auto add = [&](const std::string& name, const Measurement& measurement) {
    add_figures(lines.emplace_back(TableLine{name, formatted("%.4f", measurement.evaluation.loss)}), measurement);
  };
  for (const Measurement& measurement : sensitivity.together) add(concat(measurement.bits, " bits"), measurement);
  if (sensitivity.choice) add("chosen widths", sensitivity.choice->measured);
  return aligned(lines, 1);
}

std::string choice_text(const Sensitivity& sensitivity) {
  const ChosenBits& choice = *sensitivity.choice;
  const auto bits = [](std::optional<double> average) { return average ? formatted("%.2f", *average) : "-"; };
  return formatted(
             "\nchosen widths: %s bits for weights (%ld bytes), %s for activations; loss %+.4f predicted, %+.4f measured\n",
             bits(choice.average_weight_bits).c_str(), static_cast<long>(choice.weight_bytes),
             bits(choice.average_activation_bits).c_str(), choice.predicted_loss_increase,
             choice.measured.loss_increase) +
         candidates_text(sensitivity);
}

}  // namespace miniqat::cli
