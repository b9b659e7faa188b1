#include "datasets/arrays/answers.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "datasets/arrays/column_roles.h"
#include "datasets/arrays/table_lines.h"
#include "datasets/class_names.h"

namespace miniqat::datasets {
namespace {

/// The whole number, not negative, that a text is.
std::optional<std::int64_t> whole_in(const std::string& text) {
  constexpr double kMost = 1e9;
  const std::optional<double> value = number_in(text);
  if (!value || !(*value >= 0 && *value < kMost) || *value != std::floor(*value)) return {};
  return static_cast<std::int64_t>(*value);
}

/// What a class is called: "3" also where the file has "3.0".
std::string class_in(const std::string& text) {
  const std::optional<std::int64_t> whole = whole_in(text);
  return whole ? std::to_string(*whole) : text;
}

/// A column in all parts.
class AnswerColumn {
 public:
  AnswerColumn(const std::map<Part, AnswerColumns>& answers, const std::string& name) : answers_(answers), name_(name) {
    for (const auto& [part, table] : answers_)
      for (std::size_t row = 0; row < table.lines.size(); ++row) look(table, row);
  }

  bool are_classes() const {
    constexpr std::size_t kFew = 100;
    if (!far_.empty()) fail(far_, " is out of the range of numbers");
    if (!text_.empty() && !real_.empty())
      fail(text_, " is no number, but ", real_,
           " is one: a column has either classes, texts or whole numbers, or numbers to predict");
    if (!text_.empty()) return true;
    return real_.empty() && !has_infinite_ && classes_.size() <= kFew && 2 * classes_.size() <= rows_;
  }

  void put_classes(FoundParts& parts) const {
    if (classes_.size() > static_cast<std::size_t>(kMostClasses))
      fail(file(), ": column ", printable(name_), " has more than ", kMostClasses, " classes");
    for (const auto& [part, table] : answers_) {
      std::vector<std::string>& classes = parts.found.at(part).classes;
      for (std::size_t row = 0; row < table.lines.size(); ++row) {
        const std::string& text = table.columns[0][row];
        // They go into files that must be UTF-8, a name a line.
        if (printable(text) != text) fail(place(table, row), ": the class ", quote(text), " has control characters");
        classes.push_back(is_missing(text) ? "" : class_in(text));
      }
    }
    std::vector<std::string> names(classes_.begin(), classes_.end());
    sort_classes(names);
    const bool are_whole = text_.empty() && real_.empty() && !has_infinite_;
    parts.remarks.notes.push_back(concat("note: ", file().string(), ": column ", printable(name_), " has ",
                                         counted(names.size(), "class"), are_whole ? ", few whole numbers" : "", ": ",
                                         shortened(joined(names))));
  }

 private:
  void look(const AnswerColumns& table, std::size_t row) {
    const std::string& text = table.columns[0][row];
    if (is_missing(text)) return;
    ++rows_;
    const std::optional<double> value = number_in(text);
    if (value && !std::isfinite(*value)) {
      has_infinite_ = true;
      if (far_.empty() && is_out_of_range(text)) far_ = concat(place(table, row), ": ", quote(text));
    } else if (!value) {
      if (text_.empty()) text_ = concat(place(table, row), ": ", quote(text));
    } else if (real_.empty() && !whole_in(text)) {
      real_ = concat(quote(text), " in line ", table.lines[row]);
    }
    if (classes_.size() <= static_cast<std::size_t>(kMostClasses)) classes_.insert(class_in(text));
  }

  std::string place(const AnswerColumns& table, std::size_t row) const {
    return table_place(table.file, table.lines[row], name_);
  }
  const std::filesystem::path& file() const { return answers_.begin()->second.file; }

  const std::map<Part, AnswerColumns>& answers_;
  const std::string& name_;
  std::size_t rows_ = 0;
  std::set<std::string> classes_;
  /// The first text, the first number that is no class, and the first out of range, with their places.
  std::string text_, real_, far_;
  /// "inf" and the like: a word among texts, no number that can be predicted among others.
  bool has_infinite_ = false;
};

void put_targets(const std::map<Part, AnswerColumns>& answers, const std::vector<std::string>& names,
                 FoundParts& parts) {
  float least = INFINITY, greatest = -INFINITY;
  bool are_labels = true;
  for (const auto& [part, table] : answers) {
    const auto rows = std::ssize(table.lines), columns = std::ssize(names);
    Tensor targets(Shape{rows, columns});
    std::vector<FloatRounding> rounding(names.size());
    for (std::size_t column = 0; column < names.size(); ++column)
      for (std::size_t row = 0; row < table.lines.size(); ++row) {
        const std::string& text = table.columns[column][row];
        float& value = targets.data<float>()[row * names.size() + column];
        value = NAN;
        if (is_missing(text)) continue;
        value = rounding[column].kept(
            finite_in(text, [&, &table = table] { return table_place(table.file, table.lines[row], names[column]); }));
        least = std::min(least, value);
        greatest = std::max(greatest, value);
        are_labels = are_labels && (value == 0 || value == 1);
      }
    parts.found.at(part).targets = std::move(targets);
    note_float_rounding(table.file.string(), "column", rounding, names, parts.remarks.notes);
  }
  // Files that must be UTF-8 keep them.
  std::ranges::transform(names, std::back_inserter(parts.target_names), printable);
  const std::string what = are_labels ? concat(names.size() == 1 ? "a label" : "labels", ", 0 or 1")
                                      : concat("numbers, no classes, from ", exact(least), " to ", exact(greatest));
  parts.remarks.notes.push_back(concat("note: ", answers.begin()->second.file.string(), ": ",
                                       names.size() == 1 ? "column " : "columns ", shortened(printable(joined(names))),
                                       names.size() == 1 ? " has " : " have ", what));
}

/// Columns are told apart by their names. One alone may be asked for by its number or have several usual names.
void require_same_columns(const std::map<Part, AnswerColumns>& answers, const NumberOptions& options) {
  const AnswerColumns& first = answers.begin()->second;
  for (const auto& [part, table] : answers) {
    const bool may_differ =
        table.names.size() == 1 && first.names.size() == 1 &&
        (!options.target.empty() || (is_usual_name(table.names.front()) && is_usual_name(first.names.front())));
    if (table.names != first.names && !may_differ)
      fail(table.file, " has the columns ", shortened(printable(joined(table.names))), " to predict, in this order, ",
           first.file, " has ", shortened(printable(joined(first.names))));
  }
}

/// Whether anybody knows an answer.
bool has_some(const std::map<Part, AnswerColumns>& answers) {
  return std::ranges::any_of(answers, [](const auto& part) {
    return std::ranges::any_of(part.second.columns,
                               [](const auto& column) { return !std::ranges::all_of(column, is_missing); });
  });
}

}  // namespace

AnswerColumns take_answers(const std::filesystem::path& file, const std::vector<std::size_t>& answers,
                           NumberTable& table) {
  AnswerColumns taken{.file = file, .names = {}, .columns = {}, .lines = std::move(table.lines)};
  for (const std::size_t column : answers) {
    taken.names.push_back(table.names[column]);
    taken.columns.push_back(std::move(table.texts[column]));
  }
  return taken;
}

void put_answers(const std::map<Part, AnswerColumns>& answers, const LoadOptions& options, FoundParts& parts) {
  if (!has_some(answers)) return;
  require_same_columns(answers, options.numbers);
  const std::vector<std::string>& names = answers.rbegin()->second.names;
  const NumberOptions& numbers = options.numbers;
  if (names.size() > 1 && numbers.answers == Answers::kClasses)
    fail(answers.begin()->second.file, ": ", counted(names.size(), "column"),
         " are to be predicted; classes come from one");
  const bool targets = numbers.answers == Answers::kTargets || numbers.target_standard || names.size() > 1;
  if (targets) return put_targets(answers, names, parts);
  const AnswerColumn column(answers, names.front());
  const bool classes = numbers.answers == Answers::kClasses || !options.class_names.empty() || column.are_classes();
  if (classes)
    column.put_classes(parts);
  else
    put_targets(answers, names, parts);
}

}  // namespace miniqat::datasets
