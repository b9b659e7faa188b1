#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cli/commands.h"
#include "cli/flags/command_line.h"
#include "cli/flags/completion_scripts.h"
#include "cli/value_names.h"

namespace miniqat::cli {
namespace {

/// With the names that values of flags have.
ProgramDescription with_value_names(ProgramDescription program) {
  using Value = FlagDescription::Value;
  for (CommandDescription& command : program.commands)
    for (FlagDescription& flag : command.flags)
      for (const std::string& name : flag.names)
        if (std::optional<ValueNames> known = value_names(command.name, name)) {
          flag.value = known->is_list ? Value::kList : known->or_file ? Value::kNameOrFile : Value::kChoice;
          flag.choices = std::move(known->names);
        }
  return program;
}

}  // namespace

void add_completion(CommandLine& program) {
  Command command = program.command("completion", "Print completion of commands and flags for a shell");
  const auto write = std::make_shared<std::string (*)(const ProgramDescription&)>(bash_completion);
  command
      .choice(
          "SHELL", {"bash", "zsh", "fish"}, 0,
          [write](std::size_t shell) {
            *write = shell == 0 ? bash_completion : shell == 1 ? zsh_completion : fish_completion;
          },
          "the shell: `. <(miniqat completion bash)`; in fish `miniqat completion fish | source`")
      .required();
  command.action([write, describe = program.description()] {
    const std::string script = (*write)(with_value_names(describe()));
    std::fwrite(script.data(), 1, script.size(), stdout);
  });
}

}  // namespace miniqat::cli
