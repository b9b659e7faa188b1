#pragma once

#include <span>
#include <string>
#include <string_view>

namespace miniqat {

/// `; did you mean "conv1/Relu"?` with the candidate nearest in edit distance, or "" when none is near.
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

/// `unknown model "lnet"; known are lenet, lenet5; did you mean "lenet"?`: what an error says of a name that is none of
/// `known`. `kind` is "model", say.
std::string unknown_name(std::string_view kind, std::string_view name, std::span<const std::string> known);
std::string unknown_name(std::string_view kind, std::string_view name, std::span<const std::string_view> known);

/// "a", "a or b", "a, b or c".
std::string alternatives(std::span<const std::string> names);

}  // namespace miniqat
