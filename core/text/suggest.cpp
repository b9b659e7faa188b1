#include "core/text/suggest.h"

#include <algorithm>
#include <numeric>

#include "core/text/classic.h"
#include "core/text/quote.h"

namespace miniqat {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

/// The beginning of a long text.
std::string in_lower_case(std::string_view text) {
  constexpr std::size_t kMost = 200;
  return lower_case(std::string(text.substr(0, kMost)));
}

}  // namespace

std::string did_you_mean(std::string_view name, std::span<const std::string> candidates) {
  const std::string wanted = in_lower_case(name);
  const std::size_t near = std::max<std::size_t>(2, name.size() / 3);
  const std::string* best = nullptr;
  std::size_t best_distance = near + 1;
  bool best_goes_on = false;
  for (const std::string& candidate : candidates) {
    const std::string known = in_lower_case(candidate);
    // A short name is near to any other: "a" is two changes away from "-1", and one from nothing.
    if (wanted.find_first_of(known) == wanted.npos) continue;
    const std::size_t distance = edit_distance(wanted, known);
    const bool goes_on = known.starts_with(wanted);
    // Two may be equally near: the one whose end is missing wins. "resnet" is resnet20 rather than lenet.
    if (distance > best_distance || (distance == best_distance && (best == nullptr || best_goes_on || !goes_on)))
      continue;
    best = &candidate;
    best_distance = distance;
    best_goes_on = goes_on;
  }
  return best == nullptr ? "" : concat("; did you mean ", quote(*best), "?");
}

std::string unknown_name(std::string_view kind, std::string_view name, const std::vector<std::string>& known) {
  return concat("unknown ", kind, " ", quote(name), "; known are ", joined(known), did_you_mean(name, known));
}

std::string alternatives(std::span<const std::string> names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += concat(i == 0 ? "" : i + 1 == names.size() ? " or " : ", ", names[i]);
  return text;
}

std::string wrong_choice(std::string_view what, std::string_view value, const std::vector<std::string>& names) {
  return concat(what, " must be ", alternatives(names), ", got ", quote(value), did_you_mean(value, names));
}

}  // namespace miniqat
