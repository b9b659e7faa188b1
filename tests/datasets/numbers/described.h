#pragma once

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "core/text/error.h"
#include "core/text/suggest.h"
#include "datasets/dataset.h"
#include "datasets/known_datasets.h"
#include "tests/temp_dir.h"

// Data sets of numbers in words: what stands in a file, and what it gives.
namespace miniqat::testing {

/// "1 2.5 3"
template <class T>
std::string words_of(const Tensor& tensor) {
  std::string text;
  for (const T value : tensor.values<T>()) text += concat(text.empty() ? "" : " ", +value);
  return text;
}

/// "[2,3] 1 2 3 4 5 6, classes a b: 0 1, targets fat: 0.5 2, groups 0 1"; of pictures "bytes [2,2,2,1] ...".
inline std::string described(const datasets::Dataset& set) {
  std::string text = concat(set.has_pictures() ? "bytes " : "", set.images.shape(), " ",
                            set.has_pictures() ? words_of<std::uint8_t>(set.images) : words_of<float>(set.images));
  const auto names = [](const std::vector<std::string>& all) { return all.empty() ? "" : " " + joined(all, " "); };
  if (set.has_classes()) text += concat(", classes", names(set.class_names), ": ", words_of<std::int32_t>(set.labels));
  if (set.targets.defined())
    text +=
        concat(", ", set.targets.shape()[1], " targets", names(set.target_names), ": ", words_of<float>(set.targets));
  if (set.groups.defined()) text += concat(", groups ", words_of<std::int32_t>(set.groups));
  return text;
}

/// "train [2,3] ... | validation ... | test ...", the parts that there are; of an error "error: " with its text.
template <class Load>
std::string described_parts(const Load& load) {
  try {
    const datasets::Splits splits = load();
    std::string text;
    const auto add = [&](const char* title, const datasets::Dataset& set) {
      if (set.images.defined()) text += concat(text.empty() ? "" : " | ", title, " ", described(set));
    };
    add("train", splits.train);
    if (splits.validation) add("validation", *splits.validation);
    add("test", splits.test);
    return text;
  } catch (const Error& error) {
    return concat("error: ", error.what());
  }
}

/// Writes the files of a text: each begins with a line "== NAME".
inline void write_files(const TempDir& place, const std::string& words) {
  std::istringstream lines(words);
  std::string name, content;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("== ")) {
      place.write(name, content += line + "\n");
      continue;
    }
    name = line.substr(3);
    content.clear();
    std::filesystem::create_directories((place.path() / name).parent_path());
    place.write(name, content);
  }
}

}  // namespace miniqat::testing
