#include "datasets/arrays/recordings.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "datasets/arrays/answers.h"
#include "datasets/arrays/column_roles.h"
#include "datasets/arrays/number_table.h"
#include "datasets/arrays/series_stack.h"
#include "datasets/arrays/table_lines.h"
#include "datasets/data_dir.h"

namespace miniqat::datasets {
namespace {

namespace fs = std::filesystem;

bool is_table(const fs::path& file) {
  const std::string name = file.filename().string();
  return name.ends_with(".csv") || name.ends_with(".csv.gz");
}

/// labels.csv, or its compressed form; none if neither is there.
fs::path labels_in(const fs::path& folder) {
  for (const char* name : {"labels.csv", "labels.csv.gz"})
    if (std::error_code failure; fs::exists(folder / name, failure)) return folder / name;
  return {};
}

/// Which columns of labels.csv are what.
struct LabelColumns {
  std::size_t file = 0;
  std::vector<std::size_t> answers;
  std::optional<std::size_t> group;
};

class Recordings {
 public:
  Recordings(const fs::path& root, const LoadOptions& options) : root_(root), options_(options) {}

  FoundParts read(const std::map<Part, fs::path>& folders) {
    for (const auto& [part, folder] : folders) read_part(part, folder);
    if (!answers_.empty()) put_answers(answers_, options_, parts_);
    note_unnamed();
    return std::move(parts_);
  }

 private:
  void read_part(Part part, const fs::path& folder) {
    const fs::path labels = labels_in(folder);
    require_data_file(labels);
    LabelColumns columns;
    const auto use = [&](const std::vector<std::string>& names) {
      columns = columns_of(labels, names);
      std::vector<ColumnUse> uses(names.size(), ColumnUse::kNothing);
      for (const std::size_t column : columns.answers) uses[column] = ColumnUse::kTexts;
      if (columns.group) uses[*columns.group] = ColumnUse::kTexts;
      uses[columns.file] = ColumnUse::kTexts;
      return uses;
    };
    const auto is_name = [&](const std::string& word) { return is_column_name(options_.numbers, word); };
    NumberTable table =
        read_number_table(labels, {.use = use, .is_name = is_name, .texts_optional = options_.answers_optional});
    PartData& data = parts_.found[part];
    data.files = read_files(folder, labels, table, columns.file, data);
    if (columns.group) data.groups = std::move(table.texts[*columns.group]);
    if (columns.answers.empty() || columns.answers.size() < options_.numbers.target.size()) return;
    answers_[part] = take_answers(labels, columns.answers, table);
  }

  LabelColumns columns_of(const fs::path& labels, const std::vector<std::string>& names) const {
    LabelColumns columns;
    bool is_named = are_numbered(names);
    for (const char* name : {"path", "filename", "file"})
      if (const auto found = std::ranges::find(names, name); found != names.end()) {
        columns.file = static_cast<std::size_t>(found - names.begin());
        is_named = true;
      }
    if (std::error_code failure; !is_named && fs::is_regular_file(labels.parent_path() / names[0], failure))
      fail(labels, ": its first line must have the names of the columns, but names the file ", quote(names[0]));
    if (const std::string& group = options_.numbers.group_by; !group.empty())
      columns.group = column_called(labels, names, group);
    columns.answers = answer_columns(labels, names, options_);
    require_no_answer(labels, names, columns.answers, columns.group);
    if (columns.answers.empty() && options_.numbers.target.empty())
      for (std::size_t i = 0; i < names.size(); ++i)
        if (i != columns.file && i != columns.group && !names[i].empty()) columns.answers.push_back(i);
    return columns;
  }

  /// Reads the recordings into `data`. Returns their paths in the data set.
  std::shared_ptr<const std::vector<std::string>> read_files(const fs::path& folder, const fs::path& labels,
                                                             const NumberTable& table, std::size_t column,
                                                             PartData& data) {
    SeriesStack stack;
    std::vector<FloatRounding> rounding;
    std::vector<std::string> files;
    std::set<fs::path> read = {labels.lexically_normal()};
    for (std::size_t row = 0; row < table.lines.size(); ++row) {
      const fs::path inside = fs::path(table.texts[column][row]).lexically_normal(), file = folder / inside;
      std::error_code failure;
      if (inside.is_absolute() || inside.empty() || *inside.begin() == ".." || !fs::exists(file, failure))
        fail(table_place(labels, table.lines[row], table.names[column]), ": there is no file ", quote(inside.string()),
             " in ", folder);
      require_data_file(file);
      read_file(file, stack, rounding);
      read.insert(file.lexically_normal());
      files.push_back(file.lexically_relative(root_).string());
    }
    note_others(folder, read);
    note_float_rounding(folder.string(), "channel", rounding, channels_, parts_.remarks.notes);
    data.images = stack.stacked(options_.numbers.pad_to);
    return std::make_shared<const std::vector<std::string>>(std::move(files));
  }

  void read_file(const fs::path& file, SeriesStack& stack, std::vector<FloatRounding>& rounding) {
    const auto use_of = [](const std::string& name) {
      return name.empty() ? ColumnUse::kNothing : ColumnUse::kNumbers;
    };
    const auto use = [&](const std::vector<std::string>& names) {
      std::vector<ColumnUse> uses;
      std::ranges::transform(names, std::back_inserter(uses), use_of);
      return uses;
    };
    NumberTable steps = read_number_table(file, {.use = use});
    if (!steps.numbers.defined()) fail(file, " has no column with a name");
    if (std::erase(steps.names, "") > 0) has_unnamed_ = true;
    for (std::string& name : steps.names) name = printable(name);
    if (steps.has_names) require_known_features(file, steps.names, options_.numbers, "channel");
    if (channels_.empty()) {
      channels_ = steps.names;
      first_ = file;
      if (steps.has_names) parts_.input_names = channels_;
    }
    if (steps.names != channels_)
      fail(file, " has the channels ", shortened(joined(steps.names)), ", ", first_, " has ",
           shortened(joined(channels_)));
    rounding.resize(channels_.size());
    for (std::size_t i = 0; i < rounding.size(); ++i) rounding[i].join(steps.rounding[i]);
    const std::span<const float> values = steps.numbers.values<float>();
    stack.add({values.begin(), values.end()}, std::ssize(channels_), concat(file));
  }

  /// An index, as tables have it: a channel would be a ramp.
  void note_unnamed() {
    if (has_unnamed_)
      parts_.remarks.notes.push_back(
          concat("note: ", root_.string(), ": left out the columns of recordings that have no name"));
  }

  void note_others(const fs::path& folder, const std::set<fs::path>& read) {
    std::int64_t others = 0;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
      if (is_table(entry.path()) && !entry.is_directory() && !read.contains(entry.path().lexically_normal())) ++others;
    if (others > 0)
      parts_.remarks.notes.push_back(
          concat("note: ", folder.string(), ": left out ", counted(others, "table"), " that labels.csv does not list"));
  }

  const fs::path& root_;
  const LoadOptions& options_;
  FoundParts parts_;
  std::map<Part, AnswerColumns> answers_;
  /// The names of the first recording's channels.
  std::vector<std::string> channels_;
  fs::path first_;
  bool has_unnamed_ = false;
};

}  // namespace

bool has_recordings(const fs::path& folder) {
  const fs::path labels = labels_in(folder);
  if (std::error_code failure; labels.empty() || !fs::is_regular_file(labels, failure)) return false;
  TableLines lines(labels);
  for (int i = 0; i < 2; ++i)
    if (const std::optional<std::string_view> line = lines.next(); line && line->find(".csv") != line->npos)
      return true;
  return false;
}

FoundParts read_recordings(const fs::path& root, const std::map<Part, fs::path>& folders, const LoadOptions& options) {
  return Recordings(root, options).read(folders);
}

}  // namespace miniqat::datasets
