#include "cli/display/class_table.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "cli/display/text_table.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "training/percent.h"

namespace miniqat::cli {

using training::Answers;
using training::Hits;

namespace {

/// The rows of each list that stands for a matrix.
constexpr std::size_t kClassRows = 20;

std::string accuracy_of(const Hits& hits) { return hits.examples == 0 ? "-" : training::percent(hits.accuracy()); }

std::string class_text(const Answers& answers, std::int64_t number) {
  return number < 0 ? "none (NaN)" : name_cell(answers.name(number));
}

std::string matrix_text(const Answers& answers) {
  const bool undecided = answers.undecided() > 0;
  TableLine head = {"label", "accuracy", "pictures"};
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
  std::vector<TableLine> lines = {{"label", "accuracy", "pictures"}};
  for (const auto& [label, hits] : classes)
    lines.push_back({class_text(answers, label), accuracy_of(hits), std::to_string(hits.examples)});
  return first_rows("classes, the worst first", std::move(lines), 1);
}

std::string frequent_confusions(const Answers& answers) {
  std::vector<TableLine> lines = {{"label", "predicted", "pictures"}};
  for (const Confusion& one : confusions(answers))
    lines.push_back({class_text(answers, one.label), class_text(answers, one.predicted), std::to_string(one.count)});
  return first_rows("confusions, the most frequent first", std::move(lines), 2);
}

}  // namespace

std::string class_table(const Answers& answers) {
  return answers.classes() <= kMostMatrixClasses ? matrix_text(answers)
                                                 : worst_classes(answers) + frequent_confusions(answers);
}

std::string wrong_table(const Answers& answers) {
  if (answers.wrong().empty()) return "no wrong picture\n";
  const bool are_files = !answers.wrong().front().file.empty();
  std::vector<TableLine> lines = {{"index", "label", "predicted", "score"}};
  if (are_files) lines[0].insert(lines[0].begin(), "file");
  for (const training::WrongAnswer& answer : answers.wrong()) {
    lines.push_back({std::to_string(answer.index), class_text(answers, answer.label),
                     class_text(answers, answer.predicted),
                     answer.predicted < 0 ? "-" : training::percent(answer.score)});
    if (are_files) lines.back().insert(lines.back().begin(), printable(answer.file));
  }
  return concat(counted(lines.size() - 1, "wrong picture"), "\n", aligned(lines, are_files ? 1 : 0));
}

}  // namespace miniqat::cli
