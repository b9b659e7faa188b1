#include "python/bindings/keywords.h"

#include <algorithm>
#include <set>
#include <type_traits>

#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "training/settings/train_settings.h"

namespace miniqat::python {
namespace {

/// Flags without a value.
bool is_switch(const std::string& keyword) {
  static const std::set<std::string> kSwitches = [] {
    std::set<std::string> names = {"resume", "overwrite", "integer"};
    training::TrainSettings settings;
    training::TrainSettings::visit([&](const char* name, auto access, const char*) {
      if constexpr (std::is_same_v<std::remove_reference_t<decltype(access(settings))>, bool>) names.insert(name);
    });
    return names;
  }();
  return kSwitches.contains(keyword);
}

bool is_function(std::string_view command) {
  constexpr std::string_view kFunctions[] = {"train", "quantize", "sensitivity", "report", "predict"};
  return std::ranges::count(kFunctions, command) > 0;
}

/// Behind the flag of a setting that another one of the run has (require_same_run()): the flag is its name alone.
constexpr std::string_view kDiffers = " differs from the run's own (";

class Translator {
 public:
  explicit Translator(std::string_view text) : rest_(text) {}

  std::string translated() {
    while (!rest_.empty()) {
      const bool begins_word = made_.empty() || std::string_view(" (`\n").find(made_.back()) != std::string_view::npos;
      if (!begins_word || (!take_flag() && !take_command())) copy(rest_.front() == '"' ? end_of_quotes() : 1);
    }
    return std::move(made_);
  }

 private:
  void copy(std::size_t count) {
    made_ += rest_.substr(0, count);
    rest_.remove_prefix(std::min(count, rest_.size()));
  }

  /// False where `text` is not at the front.
  bool replace(std::string_view text, std::string_view other) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    made_ += other;
    return true;
  }

  /// Behind a name of the user's at the front, as quote() writes it: it may hold anything.
  std::size_t end_of_quotes() const {
    for (std::size_t i = 1; i < rest_.size(); ++i) {
      if (rest_[i] == '"') return i + 1;
      if (rest_[i] == '\\') ++i;
    }
    return 1;
  }

  static bool is_part_of_name(char c) { return is_ascii_letter(c) || is_ascii_digit(c) || c == '-'; }

  /// The keyword of the flag at the front; "" without one.
  static std::string keyword_of(std::string_view text) {
    if (text.size() < 3 || !text.starts_with("--") || !is_ascii_letter(text[2])) return {};
    text.remove_prefix(2);
    std::string keyword(text.begin(), std::ranges::find_if_not(text, is_part_of_name));
    std::ranges::replace(keyword, '-', '_');
    return keyword;
  }

  bool take_flag() {
    const std::string keyword = keyword_of(rest_);
    if (keyword.empty()) return false;
    rest_.remove_prefix(keyword.size() + 2);
    made_ += keyword;
    if (replace("=false", "=False")) return true;
    if (rest_.starts_with(kDiffers)) {
      copy(kDiffers.size());
      if (!replace("true)", "True)") && !replace("false)", "False)")) replace("null)", "None)");
    } else if (is_switch(keyword)) {
      made_ += "=True";
    }
    return true;
  }

  /// The word at the front, which shell_quoted() wrote, without its quotes.
  std::string take_word() {
    std::string word;
    bool is_quoted = false;
    std::size_t i = 0;
    for (; i < rest_.size(); ++i) {
      if (!is_quoted && std::string_view(" `);,\n").find(rest_[i]) != std::string_view::npos) break;
      if (rest_[i] == '\'') {
        is_quoted = !is_quoted;
        continue;
      }
      if (!is_quoted && rest_[i] == '\\' && i + 1 < rest_.size()) ++i;
      word += rest_[i];
    }
    rest_.remove_prefix(i);
    return word;
  }

  /// "miniqat train --resume --out a" with what belongs to it. A command that is no function stays one for a shell.
  bool take_command() {
    constexpr std::string_view kProgram = "miniqat ";
    if (!rest_.starts_with(kProgram)) return false;
    const std::string_view all = rest_;
    rest_.remove_prefix(kProgram.size());
    const std::string command = take_word();
    if (!is_function(command) || !rest_.starts_with(" --")) {
      rest_ = all;
      copy(made_.ends_with('`') ? rest_.find('`') : kProgram.size());
      return true;
    }
    made_ += concat("miniqat.", command, "(");
    for (const char* comma = ""; rest_.starts_with(" --"); comma = ", ") {
      rest_.remove_prefix(1);
      made_ += comma;
      const std::string keyword = keyword_of(rest_);
      if (!take_flag()) break;
      if (is_switch(keyword) || !rest_.starts_with(' ')) continue;
      rest_.remove_prefix(1);
      made_ += concat("=", quote(take_word()));
    }
    made_ += ")";
    return true;
  }

  std::string_view rest_;
  std::string made_;
};

}  // namespace

std::string with_keywords(std::string_view text) { return Translator(text).translated(); }

}  // namespace miniqat::python
