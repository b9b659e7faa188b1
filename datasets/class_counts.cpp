#include "datasets/class_counts.h"

#include <algorithm>

#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"

namespace miniqat::datasets {

std::vector<std::int64_t> class_counts(const Dataset& dataset) {
  std::vector<std::int64_t> counts(dataset.classes);
  for (const std::int32_t label : dataset.labels.values<std::int32_t>()) ++counts.at(label);
  return counts;
}

std::string class_counts_text(const Dataset& dataset) {
  constexpr std::size_t kLongest = 100;
  const std::vector<std::int64_t> counts = class_counts(dataset);
  const auto [least, most] = std::ranges::minmax(counts);
  const std::string of_each = concat(" of each of ", counted(counts.size(), "class"));
  if (least == most) return concat(most, of_each);
  // Which class has a few more nobody wants to read.
  std::string of_any = concat(least, " to ", most, of_each);
  if (most - least == 1 || (least > 0 && most <= 2 * least)) return of_any;
  std::vector<std::string> parts;
  for (std::size_t label = 0; label < counts.size(); ++label)
    parts.push_back(concat(counts[label], " of ", printable(dataset.class_name(static_cast<std::int64_t>(label)))));
  const std::string all = joined(parts);
  return all.size() > kLongest ? of_any : all;
}

std::string note_on_first(const Dataset& head, const Dataset& all) {
  const auto classes = [](const Dataset& part) {
    const std::vector<std::int64_t> counts = class_counts(part);
    return std::ssize(counts) - std::ranges::count(counts, 0);
  };
  if (!all.has_classes()) return "";
  const std::int64_t some = classes(head), every = classes(all);
  // So few pictures cannot have all classes.
  if (some == every || head.size() < 2 * every) return "";
  return concat("note: the first ", counted(head.size(), head.noun()), " have ", some, " of ", counted(every, "class"),
                ": the data are in an order of their classes");
}

std::string note_on_whole_recordings(const Dataset& head, std::int64_t asked) {
  if (asked == 0 || head.size() <= asked) return "";
  return concat("note: example ", asked, " is not the last of its recording: ", head.size(),
                " are taken, with all of its windows");
}

Levels::Levels(std::span<const std::uint8_t> pixels) {
  std::array<bool, 256> seen = {};
  for (const std::uint8_t pixel : pixels) seen[pixel] = true;
  for (int level = 255; level >= 0; --level)
    if (seen[static_cast<std::size_t>(level)]) {
      if (count == 0) greatest = level;
      least = level;
      ++count;
    }
}

std::string note_on_levels(const Dataset& pictures, const std::string& title) {
  constexpr int kNarrow = 32;
  if (!pictures.has_pictures()) return "";
  const Levels levels(pictures.images.values<std::uint8_t>());
  if (levels.greatest - levels.least >= kNarrow) return "";
  return concat("note: ", pictures.name, ": the ", title, " pictures use ", levels.count, " of 256 levels, from ",
                levels.least, " to ", levels.greatest, ": were they divided once too often?");
}

}  // namespace miniqat::datasets
