#pragma once

#include <span>
#include <string>
#include <string_view>

namespace miniqat {

/// `; did you mean "conv1/Relu"?` with the candidate nearest in edit distance, or "" when none is near.
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

}  // namespace miniqat
