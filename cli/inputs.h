#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace miniqat::cli {

/// Throws UsageError where the file that `flag` names is there and one of those that the command reads. `inputs` are
/// files, with the external data of ONNX models and the test part of series; folders of data, of which a file of any
/// depth is one if it is named like data; and the directories of runs or their checkpoints, which stand for all files
/// of the run and for its data.
void require_no_input(const std::string& flag, const std::filesystem::path& file,
                      const std::vector<std::filesystem::path>& inputs);

}  // namespace miniqat::cli
