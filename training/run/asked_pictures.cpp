#include "training/run/asked_pictures.h"

#include <charconv>

#include "core/error.h"
#include "core/quote.h"
#include "training/run/data_split.h"
#include "training/settings/usage_error.h"

namespace miniqat::training {
namespace {

std::optional<std::int64_t> number_from(const std::string& word) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size() || number < 0) return {};
  return number;
}

}  // namespace

AskedPictures find_pictures(const RunSource& run, const std::vector<std::string>& words, const PictureSource& source) {
  if (words.empty()) throw UsageError("no picture is given: name some by their numbers in the data set, from 0 on");
  require_split(run, source.split, source.dataset);
  std::vector<std::int64_t> indices;
  for (const std::string& word : words) {
    const std::optional<std::int64_t> number = number_from(word);
    if (!number) throw UsageError(concat(quote(word), " is not the number of a picture in the data set, from 0 on"));
    indices.push_back(*number);
  }
  const datasets::Splits data = load_data(run, source.dataset, source.data_dir);
  const datasets::Dataset& split = split_of(data, source.split);
  AskedPictures pictures{.data = as_usage([&] { return datasets::examples_at(split, indices); })};
  for (std::size_t i = 0; i < words.size(); ++i)
    pictures.asked.push_back({.word = words[i], .label = pictures.data.labels.values<std::int32_t>()[i]});
  return pictures;
}

}  // namespace miniqat::training
