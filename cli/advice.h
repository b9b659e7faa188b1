#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "training/settings/train_settings.h"

namespace miniqat::cli {

/// `; did you mean "--learning-rate"?` for a word that a command does not know; "" where nothing comes near. `known`
/// are the flags of the command, or the program's commands and flags where no command is chosen. Flags of other tools
/// (`--lr`, `--batch_size`, `-j`) are known by their meaning. A name of a model, or of a data set, is one without its
/// flag: `train lenet5` may mean `--model lenet5`, and `miniqat lenet5` `train --model lenet5`.
std::string suggestion_for(const std::string& word, const std::vector<std::string>& known);

/// For a command that was given without arguments, `eval` say, and the newest run below runs/ that it can work on: "for
/// the newest run: miniqat eval runs/a", as a shell takes it. Without such a run, the command that makes one. "" for
/// commands that need no run.
std::string advice_for_newest_run(const std::string& command);

/// What `train` tells somebody who gave it no settings, before it starts: data, network, bits and length, into which
/// folder, about how long if a complete run below runs/ with the same work in an epoch tells it, and a shorter first
/// command. Lines with their ends.
std::string plan_of_defaults(const training::TrainSettings& settings, const std::filesystem::path& out);

}  // namespace miniqat::cli
