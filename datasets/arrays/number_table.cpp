#include "datasets/arrays/number_table.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "core/text/error.h"
#include "core/text/quote.h"
#include "datasets/arrays/table_lines.h"

namespace miniqat::datasets {
namespace {

/// The fields of a row, one after another.
class RowFields {
 public:
  RowFields(std::string_view row, char separator) : rest_(row), separator_(separator) {}

  /// The next one, which lives until the call after this; none behind the last. One that is quoted ends at its mark;
  /// trouble() tells of a mark that is missing, and of text between the mark and the separator.
  std::optional<std::string_view> next() {
    if (ended_) return {};
    const std::size_t first = rest_.find_first_not_of(separator_ == '\t' ? " " : " \t");
    if (first != rest_.npos && rest_[first] == '"') return quoted(first + 1);
    const std::size_t end = std::min(rest_.find(separator_), rest_.size());
    const std::string_view field = trimmed(rest_.substr(0, end));
    pass(end);
    return field;
  }

  /// What is wrong with the marks so far; "" for nothing.
  std::string_view trouble() const {
    return unclosed_ ? " has a quotation mark that is not closed"
           : behind_ ? " has text between a field in quotation marks and the separator"
                     : "";
  }

 private:
  /// From behind the first mark on. Two marks in it are one.
  std::string_view quoted(std::size_t from) {
    text_.clear();
    std::size_t end = from;
    for (;; ++end) {
      const std::size_t mark = rest_.find('"', end);
      unclosed_ = unclosed_ || mark == rest_.npos;
      text_ += rest_.substr(end, mark == rest_.npos ? mark : mark - end);
      if (unclosed_) break;
      end = mark + 1;
      if (end >= rest_.size() || rest_[end] != '"') break;
      text_ += '"';
    }
    const std::size_t behind = unclosed_ ? rest_.size() : std::min(rest_.find(separator_, end), rest_.size());
    behind_ = behind_ || (!unclosed_ && !trimmed(rest_.substr(end, behind - end)).empty());
    pass(behind);
    return trimmed(text_);
  }

  /// The separator at `end`, or the end of the row.
  void pass(std::size_t end) {
    ended_ = end == rest_.size();
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
  }

  std::string_view rest_;
  const char separator_;
  bool ended_ = false;
  bool unclosed_ = false;
  bool behind_ = false;
  std::string text_;
};

char separator_of(std::string_view row) {
  for (const char separator : {',', ';', '\t'})
    if (row.find(separator) != row.npos) return separator;
  return ',';
}

/// A line without what stands around it, but for tabs before it: where tabs part the fields, the first one may be
/// empty.
std::string_view row_without_edges(std::string_view line) {
  const std::string_view row = trimmed(line);
  const std::size_t first = std::min(line.find_first_not_of(' '), line.size());
  return row.empty() ? row : std::string_view(line.data() + first, row.data() + row.size());
}

struct Fields {
  std::vector<std::string> texts;
  /// RowFields::trouble()
  std::string_view trouble = {};
};

Fields fields_of(std::string_view row) {
  Fields all;
  RowFields fields(row, separator_of(row));
  while (const std::optional<std::string_view> field = fields.next()) all.texts.emplace_back(*field);
  all.trouble = fields.trouble();
  return all;
}

/// Whether the fields of a first row are names.
bool are_names(const std::vector<std::string>& fields, const std::function<bool(const std::string& word)>& is_name) {
  return std::ranges::any_of(fields, is_name) ||
         std::ranges::none_of(fields, [](const std::string& field) { return number_in(field).has_value(); });
}

class TableReader {
 public:
  TableReader(const std::filesystem::path& path, const TableColumns& columns)
      : path_(path), columns_(columns), lines_(path) {}

  NumberTable read() {
    while (const std::optional<std::string_view> text = lines_.next()) {
      const std::string_view row = row_without_edges(*text);
      if (row.empty()) continue;
      if (uses_.empty() && begin(row)) continue;
      read_row(row);
    }
    if (table_.lines.empty()) fail(path_, " holds no row of numbers");
    const std::int64_t columns = std::ranges::count(uses_, ColumnUse::kNumbers);
    if (columns > 0) table_.numbers = Tensor::from<float>({std::ssize(table_.lines), columns}, std::as_const(numbers_));
    return std::move(table_);
  }

 private:
  /// Learns the columns from the first row. Returns whether it has names.
  bool begin(std::string_view row) {
    separator_ = separator_of(row);
    const auto [names, trouble] = fields_of(row);
    require_no_trouble(trouble);
    table_.names = names;
    table_.has_names = are_names(table_.names, columns_.is_name);
    for (std::size_t i = 0; i < table_.names.size() && !table_.has_names; ++i) table_.names[i] = std::to_string(i);
    uses_ = columns_.use(table_.names);
    table_.rounding.resize(static_cast<std::size_t>(std::ranges::count(uses_, ColumnUse::kNumbers)));
    table_.texts.resize(uses_.size());
    return table_.has_names;
  }

  void read_row(std::string_view row) {
    std::size_t column = 0, number = 0;
    RowFields fields(row, separator_);
    for (; const std::optional<std::string_view> field = fields.next(); ++column) {
      if (column >= uses_.size()) continue;
      const auto place = [&] { return table_place(path_, lines_.number(), table_.names[column]); };
      if (uses_[column] == ColumnUse::kNumbers)
        numbers_.push_back(table_.rounding[number++].kept(finite_in(*field, place)));
      else if (uses_[column] == ColumnUse::kTexts && is_missing(*field) && !columns_.texts_optional)
        fail_no_number(*field, place());
      else if (uses_[column] == ColumnUse::kTexts)
        table_.texts[column].emplace_back(*field);
    }
    require_no_trouble(fields.trouble());
    if (column != uses_.size())
      fail(path_, " line ", lines_.number(), " has ", counted(column, "field"), ", the first line ", uses_.size());
    table_.lines.push_back(lines_.number());
  }

  void require_no_trouble(std::string_view trouble) const {
    if (!trouble.empty()) fail(path_, " line ", lines_.number(), trouble);
  }

  const std::filesystem::path& path_;
  const TableColumns& columns_;
  TableLines lines_;
  char separator_ = ',';
  std::vector<ColumnUse> uses_;
  std::vector<float> numbers_;
  NumberTable table_;
};

}  // namespace

NumberTable read_number_table(const std::filesystem::path& path, const TableColumns& columns) {
  return TableReader(path, columns).read();
}

bool table_has_names(const std::filesystem::path& path, const std::function<bool(const std::string& word)>& is_name) {
  TableLines lines(path);
  while (const std::optional<std::string_view> text = lines.next())
    if (const std::string_view row = row_without_edges(*text); !row.empty())
      return are_names(fields_of(row).texts, is_name);
  return false;
}

std::string table_place(const std::filesystem::path& path, std::int64_t line, const std::string& column) {
  return concat(path, " line ", line, ", column ", shortened(printable(column)));
}

}  // namespace miniqat::datasets
