#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/tensors/standard.h"

namespace miniqat::exporters {

/// Remarks in a file, by their keys.
using Properties = std::vector<std::pair<std::string, std::string>>;

/// Whatever is known of a network: "class_names", a name a line; "task"; "input_mean", "input_std", "output_mean" and
/// "output_std", numbers with commas between them.
Properties properties(const std::vector<std::string>& class_names, const std::string& task,
                      const std::optional<Standard>& input_standard, const std::optional<Standard>& output_standard);

}  // namespace miniqat::exporters
