#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "bench/kernel_registry.h"
#include "bench/operation.h"
#include "cli/commands.h"
#include "cli/flags/command_line.h"
#include "cli/flags/completion_scripts.h"
#include "datasets/known_datasets.h"
#include "models/models.h"
#include "training/settings/optimizers.h"

namespace miniqat::cli {
namespace {

using Names = std::vector<std::string>;
using Value = FlagDescription::Value;

Names names_of_optimizers() {
  Names names;
  for (const training::KnownOptimizer& optimizer : training::known_optimizers()) names.push_back(optimizer.name);
  return names;
}

Names names_of_schedules() {
  const auto names = optim::schedule_names();
  return {names.begin(), names.end()};
}

/// The names of operations, and of kernels beside ours.
Names names_of_kernels() {
  Names names;
  for (const auto& operation : bench::operations()) names.emplace_back(operation.name);
  const Names kernels = bench::registered_names();
  names.insert(names.end(), kernels.begin(), kernels.end());
  return names;
}

Names names_of_augmentations() { return {"auto", "none", "shift", "crop-flip"}; }
Names names_of_colours() { return {"auto", "grey", "rgb"}; }
Names names_of_weights() { return {"balanced"}; }

/// Names that a shell offers for the value of a flag which takes other texts as well, from the tables that the commands
/// ask.
struct Row {
  /// "" for every command.
  const char* command;
  const char* flag;
  Value value;
  Names (*names)();
};

/// Elsewhere --model is a file.
constexpr Row kRows[] = {
    {"train", "--model", Value::kNameOrFile, models::model_names},
    {"models", "--model", Value::kChoice, models::model_names},
    {"bench", "--models", Value::kList, models::model_names},
    {"bench", "--kernel", Value::kList, names_of_kernels},
    {"", "--dataset", Value::kNameOrFile, datasets::dataset_names},
    {"", "--optimizer", Value::kChoice, names_of_optimizers},
    {"", "--schedule", Value::kChoice, names_of_schedules},
    {"", "--augment", Value::kChoice, names_of_augmentations},
    {"", "--colour", Value::kChoice, names_of_colours},
    {"", "--class-weights", Value::kNameOrFile, names_of_weights},
};

/// With the names that values of flags have.
ProgramDescription with_value_names(ProgramDescription program) {
  for (CommandDescription& command : program.commands)
    for (FlagDescription& flag : command.flags)
      for (const Row& row : kRows) {
        if (*row.command != '\0' && command.name != row.command) continue;
        if (std::ranges::find(flag.names, row.flag) == flag.names.end()) continue;
        flag.value = row.value;
        flag.choices = row.names();
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
