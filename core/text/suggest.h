#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/error.h"

namespace miniqat {

/// `; did you mean "conv1/Relu"?` with the candidate nearest in edit distance, or "" when none is near. One without any
/// letter of the name is not near, however short both are.
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

/// `unknown model "lnet"; known are lenet, lenet5; did you mean "lenet"?`: what an error says of a name that is none of
/// `known`. `kind` is "model", say.
std::string unknown_name(std::string_view kind, std::string_view name, const std::vector<std::string>& known);

/// Throws Error with unknown_name(). `known` is a list of std::string or std::string_view.
template <class Names>
[[noreturn]] void fail_unknown(std::string_view kind, std::string_view name, const Names& known) {
  fail(unknown_name(kind, name, std::vector<std::string>(known.begin(), known.end())));
}

/// "a", "a or b", "a, b or c".
std::string alternatives(std::span<const std::string> names);

/// `--augment must be none or shift, got "shft"; did you mean "shift"?`: what an error says of a value, of `what`, that
/// is none of `names`.
std::string wrong_choice(std::string_view what, std::string_view value, const std::vector<std::string>& names);

/// The items of the list, texts or numbers, with `separator` between them.
template <class List>
std::string joined(const List& list, std::string_view separator = ", ") {
  std::string text;
  for (const auto& one : list) text += concat(text.empty() ? "" : separator, one);
  return text;
}

}  // namespace miniqat
