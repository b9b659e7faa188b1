#include "cli/flags/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <type_traits>

#include "cli/flags/help_style.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "training/settings/usage_error.h"

namespace miniqat::cli {
namespace {

constexpr const char* kHelpAll = "--help-all";
constexpr const char* kHelpOfHelpAll = "Print this help with all flags and exit";

std::vector<std::string> split(const std::string& list, char mark) {
  std::vector<std::string> parts;
  std::istringstream text(list);
  for (std::string part; std::getline(text, part, mark);) parts.push_back(part);
  return parts;
}

/// {"sgd", "adam"} of the type "TEXT:{sgd,adam}" that CLI::IsMember gives an option.
std::vector<std::string> choices_in(const std::string& type) {
  const std::size_t open = type.find('{'), close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return {};
  return split(type.substr(open + 1, close - open - 1), ',');
}

/// Without the breaks and the blanks behind them that --help has.
std::string one_line(const std::string& text) {
  std::string line;
  for (const char c : text)
    if (c == '\n' || (c == ' ' && line.ends_with(' ')))
      line += line.ends_with(' ') ? "" : " ";
    else
      line += c;
  return line;
}

FlagDescription described(const CLI::Option& option) {
  using Value = FlagDescription::Value;
  FlagDescription flag{.names = {},
                       .help = one_line(option.get_description()),
                       .positional = option.get_positional(),
                       .value = Value::kNothing,
                       .choices = choices_in(option.get_type_name())};
  if (flag.positional) flag.names = {option.get_name(true)};
  for (const std::string& name : option.get_snames()) flag.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) flag.names.push_back("--" + name);
  // Types of our own begin with what the value is a name of: "FILE.svg", "MODEL.onnx", "RUN".
  static const std::set<std::string> kNoFile = {"INT", "UINT", "FLOAT", "N", "NAME"};
  const std::string type = option.get_type_name();
  if (option.get_items_expected_max() > 0)
    flag.value = !flag.choices.empty()                              ? Value::kChoice
                 : kNoFile.contains(type.substr(0, type.find(':'))) ? Value::kOther
                                                                    : Value::kText;
  return flag;
}

CommandDescription described(const CLI::App& command) {
  CommandDescription description{.name = command.get_name(), .help = command.get_description(), .flags = {}};
  for (const CLI::Option* option : command.get_options())
    if (!option->get_group().empty()) description.flags.push_back(described(*option));
  return description;
}

/// {"a", "b", "c"} of "a,b,c".
std::vector<std::string> parts_of(const std::string& list) {
  std::vector<std::string> parts(1);
  for (const char c : list) {
    if (c == ',')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

bool is_number(const std::string& text) {
  static const std::regex kNumber(R"([+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)");
  return std::regex_match(text, kNumber);
}

/// A number that is refused, and yet lies between the ends: 1e6 or 2.5 where whole numbers are asked for.
bool lies_in(const std::string& text, const std::string& low, const std::string& high) {
  return is_number(text) && std::stod(low) <= std::strtod(text.c_str(), nullptr) &&
         std::strtod(text.c_str(), nullptr) <= std::stod(high);
}

/// CLI11 takes the word behind a flag for its value, whatever it is: `train --out --help` would train, into a folder of
/// that name.
void refuse_flag(const std::string& name, const std::string& value, bool may_be_path) {
  if (!value.starts_with("--")) return;
  const std::string way = concat("; ", shell_quoted("./" + value), " names such a file or folder");
  throw training::MissingArgument(
      concat(name, " needs a value, and ", quote(value), " looks like a flag", may_be_path ? way : ""));
}

/// Whether 64 bits make a number infinite, or 0 although it has another digit before its exponent.
bool is_real_beyond_64_bits(const std::string& value) {
  if (!is_number(value)) return false;
  const double number = std::strtod(value.c_str(), nullptr);
  return std::isinf(number) || (number == 0 && value.find_first_of("123456789") < value.find_first_of("eE"));
}

/// CLI11 makes the nearest number of it that 64 bits hold, and whoever refuses that one names what nobody typed.
void refuse_beyond_64_bits(const std::string& name, const std::string& value, bool is_whole) {
  errno = 0;
  const bool is_infinite = !is_whole && is_real_beyond_64_bits(value);
  const bool is_beyond = is_whole && (std::strtoll(value.c_str(), nullptr, 0), errno == ERANGE);
  if (is_infinite || is_beyond)
    throw training::UsageError(
        concat(name, " must be a ", is_whole ? "whole " : "", "number that 64 bits hold, got ", quote(value)));
}

template <class T>
constexpr bool kIsText = std::is_same_v<T, std::string> || std::is_same_v<T, std::vector<std::string>>;
template <class T>
constexpr bool kIsReal =
    std::is_same_v<T, double> || std::is_same_v<T, std::optional<double>> || std::is_same_v<T, std::optional<float>>;

}  // namespace

Flag& Flag::required() { return option_->required(), *this; }
Flag& Flag::needs(const Flag& other) { return option_->needs(other.option_), *this; }
Flag& Flag::excludes(const Flag& other) { return option_->excludes(other.option_), *this; }
Flag& Flag::one_of(const std::vector<std::string>& values) { return option_->check(CLI::IsMember(values)), *this; }
Flag& Flag::in_range(std::int64_t low, std::int64_t high) { return option_->check(CLI::Range(low, high)), *this; }
Flag& Flag::in_range(double low, double high) { return option_->check(CLI::Range(low, high)), *this; }
Flag& Flag::positive() { return option_->check(CLI::PositiveNumber), *this; }
Flag& Flag::not_negative() { return option_->check(CLI::NonNegativeNumber), *this; }
Flag& Flag::separated_by(char mark) {
  option_->delimiter(mark)->expected(1)->allow_extra_args(false);
  return option_->multi_option_policy(CLI::MultiOptionPolicy::TakeAll), *this;
}
Flag& Flag::takes(int fewest, int most) { return option_->expected(fewest, most), *this; }
Flag& Flag::value_name(const std::string& name) { return option_->type_name(name), *this; }
Flag& Flag::shown_default(const std::string& text) { return option_->default_str(text), *this; }
Flag& Flag::heading(const std::string& title) { return option_->group(title), *this; }
Flag& Flag::last_wins() { return option_->multi_option_policy(CLI::MultiOptionPolicy::TakeLast), *this; }
bool Flag::was_given() const { return option_->count() > 0; }

Flag Command::flag(const std::string& name, bool& field, const std::string& help) {
  return Flag(app_->add_flag(name, field, help));
}

template <class T>
Flag Command::option(const std::string& name, T& field, const std::string& help) {
  CLI::Option* const option = app_->add_option(name, field, help);
  const std::string shown = name.substr(0, name.find(','));
  // What is behind a lone `--` is a positional argument, whatever it looks like.
  if (shown.starts_with("--"))
    option->check(
        [shown](const std::string& value) -> std::string {
          refuse_flag(shown, value, kIsText<T>);
          if (!kIsText<T>) refuse_beyond_64_bits(shown, value, !kIsReal<T>);
          return "";
        },
        "", "");
  return Flag(option);
}

template Flag Command::option(const std::string&, std::string&, const std::string&);
template Flag Command::option(const std::string&, int&, const std::string&);
template Flag Command::option(const std::string&, std::int64_t&, const std::string&);
template Flag Command::option(const std::string&, double&, const std::string&);
template Flag Command::option(const std::string&, std::optional<std::int64_t>&, const std::string&);
template Flag Command::option(const std::string&, std::optional<int>&, const std::string&);
template Flag Command::option(const std::string&, std::optional<float>&, const std::string&);
template Flag Command::option(const std::string&, std::optional<double>&, const std::string&);
template Flag Command::option(const std::string&, std::vector<std::string>&, const std::string&);
template Flag Command::option(const std::string&, std::vector<std::int64_t>&, const std::string&);

Flag Command::choice(const std::string& name, const std::vector<std::string>& names, std::size_t chosen,
                     std::function<void(std::size_t)> set, const std::string& help) {
  const auto take = [set = std::move(set), names](const std::string& value) {
    set(static_cast<std::size_t>(std::ranges::find(names, value) - names.begin()));
  };
  Flag flag(app_->add_option_function<std::string>(name, take, help));
  return flag.one_of(names).shown_default(names[chosen]);
}

bool Command::was_given(const std::string& name) const { return app_->count(name) > 0; }

struct Command::RunWords {
  std::string& field;
  Run need;
  std::vector<std::string>* more;
  std::string word = {};

  /// Decides what the words are once all of them are known.
  void settle() {
    if (field.empty()) {
      field = word;
    } else if (!word.empty() && more != nullptr) {
      more->insert(more->begin(), word);
    } else if (!word.empty() && word != field) {
      throw training::UsageError(concat("two runs are given: ", quote(word), " and --run ", quote(field)));
    }
    if (field.empty() && need == Run::kRequired) throw training::MissingArgument("--run is required: RUN or --run RUN");
  }
};

Flag Command::run(std::string& field, const std::string& help, Run need, std::vector<std::string>* more) {
  run_ = std::make_shared<RunWords>(RunWords{.field = field, .need = need, .more = more});
  app_->add_option("RUN", run_->word, help)->type_name("");
  return option("--run", field, "the same as RUN").value_name("RUN");
}

void Command::action(std::function<void()> run) {
  app_->callback([run = std::move(run), words = run_] {
    if (words) words->settle();
    run();
  });
}

void Command::keep_for_help_all(const Flag& flag) {
  std::dynamic_pointer_cast<HelpStyle>(app_->get_formatter())->keep_for_help_all(flag.option_);
  // Hidden until there is something that it alone shows.
  if (app_->get_help_all_ptr()->get_group().empty()) app_->set_help_all_flag(kHelpAll, kHelpOfHelpAll);
}

CommandLine::CommandLine(CLI::App& program) : program_(&program) { program.formatter(std::make_shared<HelpStyle>()); }

Command CommandLine::command(const std::string& name, const std::string& help) {
  CLI::App* const command = program_->add_subcommand(name, help);
  command->set_help_all_flag(kHelpAll, kHelpOfHelpAll)->group("");
  return Command(command);
}

std::function<ProgramDescription()> CommandLine::description() const {
  return [program = program_] {
    ProgramDescription description{.program = described(*program), .commands = {}};
    for (const CLI::App* command : program->get_subcommands([](const CLI::App*) { return true; }))
      description.commands.push_back(described(*command));
    return description;
  };
}

std::string in_plain_words(const std::string& text) {
  // The name comes first in each: "--steps", or "graph" for a positional argument.
  static const std::regex kConversion(R"(Could not convert: (\S+) = ([^]*))");
  static const std::regex kNotAmong(R"((\S+): ([^]*) not in \{([^{}]*)\})");
  static const std::regex kNotInRange(R"((\S+): Value ([^]*) not in range \[?(\S+) (?:to|-) ([^\]\s]+)\]?)");
  static const std::regex kTooMany(R"((\S+): At Most (\d+) required but received (\d+))");
  static const std::regex kTooFew(R"((\S+): At least (\d+) required but received (\d+))");
  static const std::regex kMissing(R"((\S+): \d+ required \S+ missing)");
  std::smatch match;
  if (std::regex_match(text, match, kConversion))
    return concat(match[1].str(), " must be a ", is_number(match[2]) ? "whole number" : "number", ", got ",
                  quote(match[2].str()));
  if (std::regex_match(text, match, kNotAmong)) return wrong_choice(match[1].str(), match[2].str(), parts_of(match[3]));
  if (std::regex_match(text, match, kNotInRange))
    return concat(match[1].str(), " must be ", lies_in(match[2], match[3], match[4]) ? "a whole number in " : "in ",
                  match[3].str(), "..", match[4].str(), ", got ", quote(match[2].str()));
  if (std::regex_match(text, match, kTooMany))
    return concat(match[1].str(), " was given ", match[3].str(), " times, ",
                  match[2].str() == "1" ? "once" : match[2].str() + " times", " is the most");
  if (std::regex_match(text, match, kTooFew))
    return concat(match[1].str(), " needs ", match[2].str(), " values, got ", match[3].str());
  if (std::regex_match(text, match, kMissing)) return match[1].str() + " needs a value";
  return text;
}

}  // namespace miniqat::cli
