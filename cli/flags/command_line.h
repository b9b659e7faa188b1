#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace miniqat::cli {

// The face of CLI11 that commands see. CLI11 is all headers and takes half a minute to compile in every file that adds
// a flag, so only program.cpp and files of this folder include it.

/// A flag of a command. Valid as long as the program is.
class Flag {
 public:
  Flag& required();
  Flag& needs(const Flag& other);
  Flag& excludes(const Flag& other);
  Flag& one_of(const std::vector<std::string>& values);
  /// Refuses values outside [low, high]. A NaN passes for a double.
  Flag& in_range(std::int64_t low, std::int64_t high);
  Flag& in_range(int low, int high) { return in_range(std::int64_t{low}, std::int64_t{high}); }
  Flag& in_range(double low, double high);
  Flag& positive();
  Flag& not_negative();
  /// Several values in one word, and no other words: a list with blanks would take the run behind it, too.
  Flag& separated_by(char mark);
  /// From `fewest` to `most` words.
  Flag& takes(int fewest, int most);
  /// What `--help` shows.
  Flag& value_name(const std::string& name);
  Flag& shown_default(const std::string& text);
  Flag& heading(const std::string& title);
  /// Given twice, the last one counts.
  Flag& last_wins();

  bool was_given() const;

 private:
  friend class Command;
  explicit Flag(CLI::Option* option) : option_(option) {}
  CLI::Option* option_;
};

/// A command of the program, "train" say. Names are "--flag", or without dashes for a positional argument. Fields must
/// live until the command has run; their values are the defaults that `--help` shows.
class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  Flag flag(const std::string& name, bool& field, const std::string& help);
  /// T: std::string, int, std::int64_t, double, std::optional of a number, std::vector of
  /// std::string or std::int64_t.
  template <class T>
  Flag option(const std::string& name, T& field, const std::string& help);
  /// One of some names, of which `set` is given the position.
  Flag choice(const std::string& name, const std::vector<std::string>& names, std::size_t chosen,
              std::function<void(std::size_t)> set, const std::string& help);
  /// The run that the command is about, as its first word or as `--run RUN`. The action throws UsageError for two that
  /// differ and, if it is required, for none. `more`: other words follow (predict's pictures), all of them behind
  /// `--run`. Returns the flag.
  enum class Run { kRequired, kOptional };
  Flag run(std::string& field, const std::string& help, Run need = Run::kRequired,
           std::vector<std::string>* more = nullptr);
  /// Only `--help-all` shows the flag, which every command has: those of long lists have flags for the first week.
  void keep_for_help_all(const Flag& flag);
  bool was_given(const std::string& name) const;
  /// The command's action, called once the whole line is parsed.
  void action(std::function<void()> run);

 private:
  /// Where the words of run() go.
  struct RunWords;

  CLI::App* app_;
  std::shared_ptr<RunWords> run_;
};

/// A flag or a positional argument, as `--help` shows it.
struct FlagDescription {
  /// {"-h", "--help"}; {"RUN"} of a positional argument.
  std::vector<std::string> names;
  std::string help;
  bool positional;
  /// What its value is: kNothing of a flag without one, kChoice one of the names, kList several with commas between
  /// them, kNameOrFile a name or a file, kText what could be a file, kOther a number or another name.
  enum class Value { kNothing, kChoice, kList, kNameOrFile, kText, kOther } value;
  /// The names of a kChoice, kList or kNameOrFile.
  std::vector<std::string> choices;
};

struct CommandDescription {
  std::string name;
  std::string help;
  std::vector<FlagDescription> flags;
};

/// The program itself, and its commands in the order in which they were added.
struct ProgramDescription {
  CommandDescription program;
  std::vector<CommandDescription> commands;
};

/// The program, to which commands are added.
class CommandLine {
 public:
  /// Before the program has commands: these take its style of --help.
  explicit CommandLine(CLI::App& program);
  Command command(const std::string& name, const std::string& help);
  /// What describes the program once all commands are added; valid as long as the program is.
  std::function<ProgramDescription()> description() const;

 private:
  CLI::App* program_;
};

/// CLI11's error about a wrong command line, in our words: "Could not convert: --steps = x" becomes `--steps must be a
/// number, got "x"`. Any other text stays as it is.
std::string in_plain_words(const std::string& text);

}  // namespace miniqat::cli
