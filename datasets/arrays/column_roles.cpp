#include "datasets/arrays/column_roles.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "core/text/utf8.h"
#include "datasets/arrays/table_lines.h"

namespace miniqat::datasets {
namespace {

bool is_whole_number(const std::string& word) { return !word.empty() && std::ranges::all_of(word, is_ascii_digit); }

}  // namespace

bool is_usual_name(const std::string& column) {
  const std::string word = lower_case(column);
  return word == "label" || word == "class" || word == "target";
}

bool is_column_name(const NumberOptions& options, const std::string& word) {
  const auto is_word = [&](std::string_view name) { return word == trimmed(name); };
  const bool asked_for = is_word(options.group_by) || std::ranges::any_of(options.target, is_word);
  return is_usual_name(word) || (asked_for && !word.empty() && !is_whole_number(word));
}

std::optional<std::size_t> column_called(const std::filesystem::path& file, const std::vector<std::string>& names,
                                         const std::string& asked) {
  const std::string name(trimmed(asked));
  if (std::ranges::count(names, name) > 1)
    fail(file, " has several columns ", quote(name), "; give the number of one, from 0");
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  std::size_t number = names.size();
  if (is_whole_number(name)) std::from_chars(name.data(), name.data() + name.size(), number);
  return number < names.size() ? std::optional(number) : std::nullopt;
}

void require_no_answer(const std::filesystem::path& file, const std::vector<std::string>& names,
                       const std::vector<std::size_t>& answers, std::optional<std::size_t> group) {
  if (group && std::ranges::find(answers, *group) != answers.end())
    fail(file, ": the column ", quote(names[*group]),
         " is to be predicted (--target), and cannot have the groups, too (--group-by)");
}

void fail_no_column(const std::filesystem::path& file, const std::vector<std::string>& names,
                    const std::string& wanted) {
  std::vector<std::string> readable;
  std::ranges::copy_if(names, std::back_inserter(readable), utf8::is_valid);
  const std::string near = did_you_mean(wanted, readable);
  fail(file, " has no column ", quote(wanted), "; its columns are ", shortened(printable(joined(names))),
       near.empty() && readable.size() < names.size()
           ? ", not all of them in UTF-8: save the table as that, or give the number of a column, from 0"
           : near);
}

std::vector<std::size_t> answer_columns(const std::filesystem::path& file, const std::vector<std::string>& names,
                                        const LoadOptions& options) {
  std::vector<std::size_t> columns;
  for (const std::string& wanted : options.numbers.target) {
    const std::optional<std::size_t> column = column_called(file, names, wanted);
    if (!column && options.answers_optional) continue;
    if (!column) fail_no_column(file, names, wanted);
    if (std::ranges::find(columns, *column) != columns.end())
      fail(file, ": the column ", quote(wanted), " is asked for twice");
    columns.push_back(*column);
  }
  if (!options.numbers.target.empty()) return columns;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (is_usual_name(names[i])) columns.push_back(i);
  if (columns.size() > 1)
    fail(file, " has the columns ", quote(names[columns[0]]), " and ", quote(names[columns[1]]),
         "; say which one is to be predicted (--target)");
  return columns;
}

bool are_numbered(const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] != std::to_string(i)) return false;
  return true;
}

void require_known_features(const std::filesystem::path& file, const std::vector<std::string>& features,
                            const NumberOptions& options, const char* thing) {
  if (options.features.empty() || features == options.features) return;
  fail(file, " has the ", thing, "s ", shortened(joined(features)), "; the network was trained on ",
       shortened(joined(options.features)), ", in this order");
}

}  // namespace miniqat::datasets
