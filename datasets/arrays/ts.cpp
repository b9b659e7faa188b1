#include "datasets/arrays/ts.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "datasets/arrays/float_rounding.h"
#include "datasets/arrays/series_stack.h"
#include "datasets/arrays/table_lines.h"
#include "datasets/data_dir.h"

namespace miniqat::datasets {
namespace {

namespace fs = std::filesystem;

/// The words of a line, with spaces or tabs between them.
std::vector<std::string> words_in(std::string_view line) {
  std::vector<std::string> words;
  for (line = trimmed(line); !line.empty(); line = trimmed(line)) {
    const std::size_t end = std::min(line.find_first_of(" \t"), line.size());
    words.emplace_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return words;
}

class TsReader {
 public:
  TsReader(const fs::path& file, const LoadOptions& options, FoundParts& parts)
      : file_(file), options_(options), parts_(parts), lines_(file) {}

  PartData read() {
    bool in_data = false;
    while (const std::optional<std::string_view> text = lines_.next()) {
      const std::string_view line = trimmed(*text);
      if (line.empty() || line.front() == '#' || (!in_data && line.front() == '%')) continue;
      if (in_data)
        read_series(line);
      else if (line.front() == '@')
        in_data = !read_header(line);
      else
        fail(place(), " stands before @data, and begins with neither @ nor #");
    }
    if (count_ == 0) fail(file_, " holds no series", in_data ? "" : ": it has no @data");
    PartData data{.images = stack_.stacked(options_.numbers.pad_to)};
    note_float_rounding(file_.string(), "dimension", rounding_, dimension_names(), parts_.remarks.notes);
    note_float_rounding(file_.string() + ", the numbers to predict", "", {target_rounding_}, {}, parts_.remarks.notes);
    data.classes = std::move(classes_);
    if (has_target_) data.targets = Tensor::from<float>({std::ssize(targets_), 1}, std::as_const(targets_));
    return data;
  }

 private:
  /// Returns false for the last line, @data.
  bool read_header(std::string_view line) {
    const std::vector<std::string> words = words_in(line.substr(1));
    if (words.empty()) return true;
    const std::string key = lower_case(words[0]);
    if (key == "data") {
      answer_as_asked();
      return false;
    }
    if (key == "timestamps" && yes(words)) fail(place(), ": series with time stamps (@timestamps true) cannot be read");
    if (key == "univariate" && yes(words)) dimensions_ = 1;
    if (key == "dimensions" || key == "dimension") dimensions_ = count_in(words);
    if (key == "serieslength") steps_ = count_in(words);
    if (key == "equallength") equal_ = yes(words);
    if (key == "targetlabel") has_target_ = yes(words);
    if (key == "classlabel" && yes(words)) {
      has_class_ = true;
      known_.assign(words.begin() + 2, words.end());
      parts_.class_names.insert(parts_.class_names.end(), known_.begin(), known_.end());
    }
    if (has_class_ && has_target_) fail(place(), ": the series have either classes or numbers to predict");
    return true;
  }

  /// Numbers that the header calls classes, or the other way round.
  void answer_as_asked() {
    if (options_.numbers.answers == Answers::kAuto || !(has_class_ || has_target_)) return;
    has_target_ = options_.numbers.answers == Answers::kTargets;
    has_class_ = !has_target_;
    if (has_target_) parts_.class_names.clear();
  }

  bool yes(const std::vector<std::string>& words) const {
    const std::string word = words.size() < 2 ? "" : lower_case(words[1]);
    if (word != "true" && word != "false") fail(place(), ": behind @", words[0], " stands neither true nor false");
    return word == "true";
  }

  std::int64_t count_in(const std::vector<std::string>& words) const {
    std::int64_t count = 0;
    const std::string word = words.size() < 2 ? "" : words[1];
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), count);
    if (error != std::errc() || end != word.data() + word.size() || count < 1)
      fail(place(), ": behind @", words[0], " stands no number from 1 on");
    return count;
  }

  void read_series(std::string_view line) {
    const bool answered = has_class_ || has_target_;
    const std::int64_t dimensions = std::ranges::count(line, ':') + (answered ? 0 : 1);
    if (dimensions == 0) fail(place(), " has no ", has_class_ ? "class" : "number to predict", " behind a ':'");
    if (dimensions_ != 0 && dimensions != dimensions_)
      fail(place(), " has ", counted(dimensions, "dimension"), answered ? ", counted without the answer" : "",
           "; the header announces ", dimensions_);
    // One dimension after another: a line may announce more places than it has numbers.
    std::vector<float> read;
    std::int64_t steps = 0;
    for (std::int64_t dimension = 0; dimension < dimensions; ++dimension) {
      const auto before = std::ssize(read);
      read_dimension(take(line, ':'), dimension, read);
      const std::int64_t found = std::ssize(read) - before;
      if (dimension == 0) steps = found;
      if (found != steps)
        fail(place(), ": dimension 1 has ", counted(steps, "step"), ", dimension ", dimension + 1, " has ", found);
    }
    std::vector<float> values;
    for (std::int64_t i = 0; i < steps * dimensions; ++i)
      values.push_back(read[static_cast<std::size_t>(i % dimensions * steps + i / dimensions)]);
    if (steps_ != 0 && equal_ && steps != steps_)
      fail(place(), " has ", counted(steps, "step"), "; @seriesLength announces ", steps_);
    stack_.add(std::move(values), dimensions, place());
    ++count_;
    if (answered) read_answer(trimmed(line));
  }

  /// Puts the steps of a dimension behind `values`.
  void read_dimension(std::string_view text, std::int64_t dimension, std::vector<float>& values) {
    const std::int64_t steps = std::ranges::count(text, ',') + 1;
    if (dimension == std::ssize(rounding_)) rounding_.emplace_back();
    FloatRounding& rounding = rounding_[static_cast<std::size_t>(dimension)];
    for (std::int64_t step = 0; step < steps; ++step)
      values.push_back(rounding.kept(finite_in(trimmed(take(text, ',')), [&] {
        return concat(place(), ", dimension ", dimension + 1, ", step ", step + 1);
      })));
  }

  void read_answer(std::string_view text) {
    if (options_.answers_optional && is_missing(text)) {
      if (has_target_)
        targets_.push_back(NAN);
      else
        classes_.emplace_back();
      return;
    }
    if (has_target_) {
      targets_.push_back(
          target_rounding_.kept(finite_in(text, [&] { return concat(place(), ", the number to predict"); })));
      return;
    }
    classes_.emplace_back(text);
    const std::string& name = classes_.back();
    if (!known_.empty() && std::ranges::find(known_, name) == known_.end())
      fail(place(), " has the class ", quote(name), "; @classLabel has ", shortened(printable(joined(known_))));
    if (name.empty() || name == "?") fail(place(), " has no class");
    if (printable(name) != name) fail(place(), ": the class ", quote(name), " has control characters");
  }

  /// From 1, as errors count them; none for one alone.
  std::vector<std::string> dimension_names() const {
    std::vector<std::string> names;
    for (std::size_t i = 1; i <= rounding_.size() && rounding_.size() > 1; ++i) names.push_back(std::to_string(i));
    return names;
  }

  std::string place() const { return concat(file_, " line ", lines_.number()); }

  const fs::path& file_;
  const LoadOptions& options_;
  FoundParts& parts_;
  TableLines lines_;
  // What the header says; 0: nothing.
  std::int64_t dimensions_ = 0;
  std::int64_t steps_ = 0;
  bool equal_ = true;
  bool has_class_ = false;
  bool has_target_ = false;
  std::vector<std::string> known_;

  std::int64_t count_ = 0;
  SeriesStack stack_;
  std::vector<std::string> classes_;
  std::vector<float> targets_;
  /// What float32 takes of each dimension, and of the numbers to predict.
  std::vector<FloatRounding> rounding_;
  FloatRounding target_rounding_;
};

}  // namespace

FoundParts read_ts(const std::map<Part, fs::path>& files, const LoadOptions& options) {
  FoundParts parts;
  for (const auto& [part, file] : files) {
    require_data_file(file);
    parts.found[part] = TsReader(file, options, parts).read();
  }
  return parts;
}

std::map<Part, fs::path> ts_parts(const fs::path& file) {
  constexpr std::string_view kTrain = "_TRAIN";
  std::map<Part, fs::path> parts = {{Part::kTrain, file}};
  std::string name = file.filename().string();
  name.resize(std::min(name.size(), name.rfind(".ts")));
  if (!name.ends_with(kTrain)) return parts;
  name.resize(name.size() - kTrain.size());
  for (const char* ending : {"_TEST.ts", "_TEST.ts.gz"})
    if (const fs::path test = file.parent_path() / (name + ending); fs::exists(test) || fs::is_symlink(test))
      parts.try_emplace(Part::kTest, test);
  return parts;
}

bool is_ts(const fs::path& file) {
  const std::string name = file.filename().string();
  return name.ends_with(".ts") || name.ends_with(".ts.gz");
}

}  // namespace miniqat::datasets
