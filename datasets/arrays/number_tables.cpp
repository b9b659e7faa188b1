#include "datasets/arrays/number_tables.h"

#include <utility>

#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "datasets/arrays/answers.h"
#include "datasets/arrays/column_roles.h"
#include "datasets/arrays/number_table.h"
#include "datasets/data_dir.h"

namespace miniqat::datasets {
namespace {

namespace fs = std::filesystem;

class NumberTables {
 public:
  explicit NumberTables(const LoadOptions& options) : options_(options) {}

  FoundParts read(const std::map<Part, fs::path>& files) {
    for (const auto& [part, file] : files) read_part(part, file);
    if (!answers_.empty())
      put_answers(answers_, options_, parts_);
    else if (!options_.answers_optional)
      parts_.remarks.notes.push_back(concat(
          "note: ", files.begin()->second.string(),
          ": no column is called label, class or target, and none is named (--target): all of them are features"));
    return std::move(parts_);
  }

 private:
  void read_part(Part part, const fs::path& file) {
    require_data_file(file);
    std::vector<std::size_t> answers;
    std::optional<std::size_t> group;
    const auto use = [&](const std::vector<std::string>& names) {
      if (!are_features(names)) answers = answer_columns(file, names, options_);
      group = group_column(file, names);
      require_no_answer(file, names, answers, group);
      return uses_of(file, names, answers, group);
    };
    const auto is_name = [&](const std::string& word) { return is_column_name(options_.numbers, word); };
    NumberTable table =
        read_number_table(file, {.use = use, .is_name = is_name, .texts_optional = options_.answers_optional});
    if (!table.numbers.defined()) fail(file, " has no column of features beside what is to be predicted");
    PartData& data = parts_.found[part];
    data.images = table.numbers;
    if (group) data.groups = std::move(table.texts[*group]);
    if (table.has_names) parts_.input_names = features_;
    note_float_rounding(file.string(), "column", table.rounding, features_, parts_.remarks.notes);
    if (answers.empty() || answers.size() < options_.numbers.target.size()) return;
    answers_[part] = take_answers(file, answers, table);
  }

  /// None where all are test examples: nobody needs the groups then. If the column is there, it is no feature.
  std::optional<std::size_t> group_column(const fs::path& file, const std::vector<std::string>& names) const {
    const std::string& name = options_.numbers.group_by;
    if (name.empty()) return {};
    const std::optional<std::size_t> column = column_called(file, names, name);
    if (!column && !options_.whole_as_test) fail_no_column(file, names, name);
    return column;
  }

  std::vector<ColumnUse> uses_of(const fs::path& file, const std::vector<std::string>& names,
                                 const std::vector<std::size_t>& answers, std::optional<std::size_t> group) {
    std::vector<ColumnUse> uses(names.size(), ColumnUse::kNumbers);
    for (const std::size_t column : answers) uses[column] = ColumnUse::kTexts;
    if (group) uses[*group] = ColumnUse::kTexts;
    std::vector<std::string> features;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (uses[i] == ColumnUse::kNumbers && names[i].empty()) {
        uses[i] = ColumnUse::kNothing;
        parts_.remarks.notes.push_back(concat("note: ", file.string(), ": left out column ", i, ", which has no name"));
      }
      if (uses[i] == ColumnUse::kNumbers) features.push_back(printable(names[i]));
    }
    if (!are_numbered(names)) require_known_features(file, features, options_.numbers, "feature");
    if (features_.empty()) {
      if (options_.answers_optional && options_.numbers.standard && options_.numbers.features.empty() &&
          !are_numbered(names))
        parts_.remarks.notes.push_back(concat(
            "note: ", file.string(),
            ": the run keeps no names of columns, and takes these in their order: ", shortened(joined(features))));
      features_ = features;
      first_ = file;
    }
    if (features != features_)
      fail(file, " has the features ", shortened(joined(features)), ", ", first_, " has ",
           shortened(joined(features_)));
    return uses;
  }

  /// Whether a table without answers has the network's features alone: the number of a column that is to be predicted
  /// would be that of a feature.
  bool are_features(const std::vector<std::string>& names) const {
    if (!options_.answers_optional) return false;
    const NumberOptions& known = options_.numbers;
    return (!known.features.empty() && names == known.features) ||
           (are_numbered(names) && std::ssize(names) == known.channels);
  }

  const LoadOptions& options_;
  FoundParts parts_;
  std::map<Part, AnswerColumns> answers_;
  /// The names of the first table's features.
  std::vector<std::string> features_;
  fs::path first_;
};

}  // namespace

FoundParts read_number_tables(const std::map<Part, fs::path>& files, const LoadOptions& options) {
  return NumberTables(options).read(files);
}

}  // namespace miniqat::datasets
