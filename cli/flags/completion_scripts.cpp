#include "cli/flags/completion_scripts.h"

#include <utility>
#include <vector>

#include "core/concat.h"
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

/// One word of a shell.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

// Asked for the words that may come, a script in bash looks at the command (the first word) and the word before. What
// `--flag=` is followed by comes as words of its own: "--flag", "=", and the value.
constexpr const char* kBashBegin = R"(# Completion of miniqat in bash, made by `miniqat completion bash`.
_miniqat_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$word"); }
_miniqat_files() {
  compopt -o filenames 2> /dev/null
  mapfile -t COMPREPLY < <(compgen -f -- "$word")
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
  if (flag.value == Value::kChoice) return concat("_miniqat_words \"", joined(flag.choices, " "), "\"");
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
  if (flag.value == Value::kChoice) value = concat("(", joined(flag.choices, " "), ")");
  if (flag.value == Value::kText) value = "_files";
  if (flag.positional) return quoted(concat("*:", escaped(name, ":"), ":", value));
  const std::string head = concat(name, "[", escaped(flag.help, "[]\\"), "]");
  return quoted(flag.value == Value::kNothing ? head : concat(head, ":value:", value.empty() ? " " : value));
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

}  // namespace

std::string bash_completion(const ProgramDescription& program) {
  std::vector<std::string> words;
  for (const CommandDescription& command : program.commands) words.push_back(command.name);
  const std::vector<std::string> flags = flag_names(program.program);
  words.insert(words.end(), flags.begin(), flags.end());
  std::string text = concat(kBashBegin, "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    _miniqat_words \"",
                            joined(words, " "), "\"\n    return\n  fi\n  case $command in\n");
  for (const CommandDescription& command : program.commands) text += bash_command(command);
  return text + "  esac\n}\ncomplete -F _miniqat miniqat\n";
}

std::string zsh_completion(const ProgramDescription& program) {
  std::string commands, cases;
  for (const CommandDescription& command : program.commands) {
    commands += concat("    ", quoted(concat(command.name, ":", escaped(command.help, ":\\"))), "\n");
    cases += concat("    ", command.name, ")\n      ", zsh_flags(command), " ;;\n");
  }
  return concat("#compdef miniqat\n# Completion of miniqat in zsh, made by `miniqat completion zsh`.\n",
                "_miniqat() {\n  local -a known=(\n", commands,
                "  )\n  if ((CURRENT == 2)); then\n    _describe command known\n    ", zsh_flags(program.program),
                "\n    return\n  fi\n  local chosen=$words[2]\n  shift words\n  ((CURRENT--))\n  case $chosen in\n",
                cases, "  esac\n}\nif [ \"$funcstack[1]\" = _miniqat ]; then\n  _miniqat \"$@\"\nelse\n",
                "  compdef _miniqat miniqat\nfi\n");
}

}  // namespace miniqat::cli
