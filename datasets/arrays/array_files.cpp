#include "datasets/arrays/array_files.h"

#include <algorithm>
#include <span>

#include "core/text/error.h"

namespace miniqat::datasets {
namespace {

/// Around the name of a split; without one, of all there is.
struct Spelling {
  const char *images, *labels;
};
constexpr Spelling kSpellings[] = {
    {"x_@", "y_@"}, {"X_@", "y_@"}, {"@_images", "@_labels"}, {"@_x", "@_y"}, {"@_data", "@_labels"}};
constexpr Spelling kAlone[] = {{"images", "labels"}, {"x", "y"},         {"X", "y"},
                               {"data", "target"},   {"data", "labels"}, {"arr_0", "arr_1"}};

std::string spelled(std::string pattern, const std::string& split) {
  if (const std::size_t place = pattern.find('@'); place != std::string::npos) pattern.replace(place, 1, split);
  return pattern;
}

std::optional<ArrayPair> find_pair(const std::vector<std::string>& names, std::span<const Spelling> spellings,
                                   const std::vector<std::string>& splits) {
  const auto has = [&](const std::string& name) { return std::ranges::find(names, name) != names.end(); };
  for (const std::string& split : splits)
    for (const Spelling& spelling : spellings) {
      ArrayPair pair{spelled(spelling.images, split), spelled(spelling.labels, split)};
      if (has(pair.images) && has(pair.labels)) return pair;
    }
  return {};
}

}  // namespace

ArrayNames find_arrays(const std::vector<std::string>& names) {
  ArrayNames found{.train = find_pair(names, kSpellings, {"train"}),
                   .validation = find_pair(names, kSpellings, {"val", "valid", "validation"}),
                   .test = find_pair(names, kSpellings, {"test"})};
  if (!found.train) found.train = find_pair(names, kAlone, {""});
  return found;
}

std::vector<std::string> npy_names(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failure))
    if (entry.path().extension() == ".npy") names.push_back(entry.path().stem().string());
  if (failure) fail("cannot read ", folder, ": ", failure.message());
  std::ranges::sort(names);
  return names;
}

}  // namespace miniqat::datasets
