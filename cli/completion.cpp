#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "cli/flags/command_line.h"
#include "cli/flags/completion_scripts.h"

namespace miniqat::cli {

void add_completion(CommandLine& program) {
  Command command = program.command("completion", "Print completion of commands and flags for a shell");
  const auto zsh = std::make_shared<bool>(false);
  command
      .choice(
          "SHELL", {"bash", "zsh"}, 0, [zsh](std::size_t shell) { *zsh = shell == 1; },
          "the shell: `. <(miniqat completion bash)`")
      .required();
  command.action([zsh, describe = program.description()] {
    const std::string script = *zsh ? zsh_completion(describe()) : bash_completion(describe());
    std::fwrite(script.data(), 1, script.size(), stdout);
  });
}

}  // namespace miniqat::cli
