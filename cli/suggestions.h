#pragma once

#include <string>
#include <vector>

namespace miniqat::cli {

/// `; did you mean "--learning-rate"?` for a word that a command does not know; "" where nothing comes near. `known`
/// are the flags of the command, or the program's commands and flags where no command is chosen. Flags of other tools
/// (`--lr`, `--batch_size`, `-j`) are known by their meaning. A name of a model, or of a data set, is one without its
/// flag: `train lenet5` may mean `--model lenet5`, and `miniqat lenet5` `train --model lenet5`.
std::string suggestion_for(const std::string& word, const std::vector<std::string>& known);

}  // namespace miniqat::cli
