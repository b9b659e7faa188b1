#include "cli/flags/completion_scripts.h"

#include <utility>
#include <vector>

#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"

namespace miniqat::cli {
namespace {

using Value = FlagDescription::Value;

/// The text with a backslash before each of the marks.
std::string escaped(const std::string& text, const std::string& marks) {
  std::string result;
  for (const char c : text) {
    if (marks.find(c) != std::string::npos) result += '\\';
    result += c;
  }
  return result;
}

// Asked for the words that may come, a script in bash looks at the command (the first word) and the word before. What
// `--flag=` is followed by comes as words of its own: "--flag", "=", and the value.
constexpr const char* kBashBegin = R"(# Completion of miniqat in bash, made by `miniqat completion bash`.
_miniqat_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$word"); }
_miniqat_files() {
  compopt -o filenames 2> /dev/null
  mapfile -t COMPREPLY < <(compgen -f -- "$word")
}
_miniqat_words_or_files() {
  compopt -o filenames 2> /dev/null
  mapfile -t COMPREPLY < <(compgen -W "$1" -- "$word"; compgen -f -- "$word")
}
_miniqat_list() {
  compopt -o nospace 2> /dev/null
  mapfile -t COMPREPLY < <(compgen -P "${word%"${word##*,}"}" -W "$1" -- "${word##*,}")
}
_miniqat() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]}
  COMPREPLY=()
  if [ "$word" = = ]; then
    word=
  elif [ "$before" = = ]; then
    before=${COMP_WORDS[COMP_CWORD - 2]}
  fi
)";

/// What completes a value.
std::string bash_value(const FlagDescription& flag) {
  const std::string names = concat(" \"", joined(flag.choices, " "), "\"");
  if (flag.value == Value::kChoice) return "_miniqat_words" + names;
  if (flag.value == Value::kNameOrFile) return "_miniqat_words_or_files" + names;
  if (flag.value == Value::kList) return "_miniqat_list" + names;
  return flag.value == Value::kText ? "_miniqat_files" : "COMPREPLY=()";
}

/// The flags of the command as words, and what its positional arguments are completed with.
std::string bash_command(const CommandDescription& command) {
  std::vector<std::string> flags;
  std::string positional = "COMPREPLY=()", text;
  for (const FlagDescription& flag : command.flags) {
    if (flag.positional) {
      positional = bash_value(flag);
      continue;
    }
    flags.insert(flags.end(), flag.names.begin(), flag.names.end());
    if (flag.value == Value::kNothing) continue;
    text += concat("        ", joined(flag.names, "|"), ") ", bash_value(flag), "; return ;;\n");
  }
  return concat("    ", command.name, ")\n      case $before in\n", text,
                "      esac\n      if [[ $word == -* ]]; then\n        _miniqat_words \"", joined(flags, " "),
                "\"\n      else\n        ", positional, "\n      fi ;;\n");
}

std::vector<std::string> flag_names(const CommandDescription& command) {
  std::vector<std::string> names;
  for (const FlagDescription& flag : command.flags) names.insert(names.end(), flag.names.begin(), flag.names.end());
  return names;
}

/// '--out[the file to write]:file:_files', an argument of zsh's _arguments.
std::string zsh_flag(const FlagDescription& flag, const std::string& name) {
  std::string value;
  const std::string names = joined(flag.choices, " ");
  if (flag.value == Value::kChoice) value = concat("(", names, ")");
  if (flag.value == Value::kText) value = "_files";
  // A blank in front: called as it stands, without arguments of _arguments' own.
  if (flag.value == Value::kNameOrFile) value = concat(" _miniqat_named ", names);
  if (flag.value == Value::kList) value = concat(" _values -s , name ", names);
  if (flag.positional) return shell_quoted(concat("*:", escaped(name, ":"), ":", value));
  const std::string head = concat(name, "[", escaped(flag.help, "[]\\"), "]");
  return shell_quoted(flag.value == Value::kNothing ? head : concat(head, ":value:", value.empty() ? " " : value));
}

std::string zsh_flags(const CommandDescription& command) {
  std::string text = "_arguments";
  bool has_positional = false;
  for (const FlagDescription& flag : command.flags)
    for (const std::string& name : flag.names) {
      // One rule is for all words that are no flags.
      if (flag.positional && std::exchange(has_positional, true)) continue;
      text += concat(" \\\n        ", zsh_flag(flag, name));
    }
  return text;
}

std::vector<std::string> command_names(const ProgramDescription& program) {
  std::vector<std::string> names;
  for (const CommandDescription& command : program.commands) names.push_back(command.name);
  return names;
}

constexpr const char* kHelpOfHelp = "Print the help of a command";

/// A word of fish, which has two escapes between single quotes.
std::string fish_quoted(const std::string& text) { return concat("'", escaped(text, "'\\"), "'"); }

// Asked for the words that may come, fish asks all lines whose condition (-n) holds. `commandline -opc` are the words
// before the one that is typed, the program's name first.
constexpr const char* kFishBegin = R"(# Completion of miniqat in fish, made by `miniqat completion fish`.
function __miniqat_words
  test (count (commandline -opc)) -eq $argv[1]
end
function __miniqat_command
  set -l words (commandline -opc)
  test (count $words) -ge 2; and test $words[2] = $argv[1]
end
function __miniqat_list
  set -l begun (commandline -ct | string replace -r '^--[^=]*=' '' | string match -r '.*,')
  test -n "$begun"; or set begun ''
  printf '%s\n' $begun$argv
end
complete -c miniqat -e
complete -c miniqat -f
)";

/// What follows the condition: a flag's names, help and value.
std::string fish_flag(const FlagDescription& flag) {
  std::string text;
  for (const std::string& name : flag.names)
    if (!flag.positional) text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  const bool takes_file = flag.value == Value::kText || flag.value == Value::kNameOrFile;
  if (takes_file) text += flag.positional ? " -F" : " -r -F";
  if (flag.value != Value::kNothing && !takes_file && !flag.positional) text += " -x";
  const std::string names = joined(flag.choices, " ");
  if (flag.value == Value::kList)
    text += concat(" -a ", fish_quoted(concat("(__miniqat_list ", names, ")")));
  else if (!names.empty())
    text += concat(" -a ", fish_quoted(names));
  return flag.positional ? text : concat(text, " -d ", fish_quoted(flag.help));
}

std::string fish_line(const std::string& condition, const std::string& rest) {
  return concat("complete -c miniqat -n ", fish_quoted(condition), rest, "\n");
}

}  // namespace

std::string bash_completion(const ProgramDescription& program) {
  const std::vector<std::string> commands = command_names(program), flags = flag_names(program.program);
  std::vector<std::string> words = commands;
  words.emplace_back("help");
  words.insert(words.end(), flags.begin(), flags.end());
  std::string text =
      concat(kBashBegin, "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    _miniqat_words \"", joined(words, " "),
             "\"\n    return\n  fi\n  case $command in\n    help) [ \"$COMP_CWORD\" -gt 2 ] || _miniqat_words \"",
             joined(commands, " "), "\" ;;\n");
  for (const CommandDescription& command : program.commands) text += bash_command(command);
  return text + "  esac\n}\ncomplete -F _miniqat miniqat\n";
}

std::string zsh_completion(const ProgramDescription& program) {
  std::string commands, cases;
  for (const CommandDescription& command : program.commands) {
    commands += concat("    ", shell_quoted(concat(command.name, ":", escaped(command.help, ":\\"))), "\n");
    cases += concat("    ", command.name, ")\n      ", zsh_flags(command), " ;;\n");
  }
  return concat("#compdef miniqat\n# Completion of miniqat in zsh, made by `miniqat completion zsh`.\n",
                "_miniqat_named() {\n  _alternative \"names:name:($*)\" files:file:_files\n}\n",
                "_miniqat() {\n  local -a known=(\n", commands,
                "  )\n  if ((CURRENT == 2)); then\n    known+=('help:", kHelpOfHelp,
                "')\n    _describe command known\n    ", zsh_flags(program.program),
                "\n    return\n  fi\n  local chosen=$words[2]\n  shift words\n  ((CURRENT--))\n  case $chosen in\n",
                "    help)\n      ((CURRENT > 2)) || _describe command known ;;\n", cases,
                "  esac\n}\nif [ \"$funcstack[1]\" = _miniqat ]; then\n  _miniqat \"$@\"\nelse\n",
                "  compdef _miniqat miniqat\nfi\n");
}

std::string fish_completion(const ProgramDescription& program) {
  std::string text = kFishBegin;
  const auto add_commands = [&](const std::string& condition) {
    for (const CommandDescription& command : program.commands)
      text += fish_line(condition, concat(" -a ", command.name, " -d ", fish_quoted(command.help)));
  };
  add_commands("__miniqat_words 1");
  text += fish_line("__miniqat_words 1", concat(" -a help -d ", fish_quoted(kHelpOfHelp)));
  add_commands("__miniqat_words 2; and __miniqat_command help");
  for (const FlagDescription& flag : program.program.flags) text += fish_line("__miniqat_words 1", fish_flag(flag));
  for (const CommandDescription& command : program.commands)
    for (const FlagDescription& flag : command.flags)
      text += fish_line("__miniqat_command " + command.name, fish_flag(flag));
  return text;
}

}  // namespace miniqat::cli
