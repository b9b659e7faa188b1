#include "training/run/asked_pictures.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include "core/files/files.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "datasets/known_datasets.h"
#include "datasets/standardise.h"
#include "datasets/user_files.h"
#include "training/run/data_of_run.h"
#include "training/settings/usage_error.h"

namespace miniqat::training {
namespace {

std::optional<std::int64_t> number_from(const std::string& word) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size() || number < 0) return {};
  return number;
}

/// Without words all of the part.
AskedPictures numbered_pictures(const RunSource& run, std::vector<std::string> words, std::vector<std::int64_t> numbers,
                                const PictureSource& source) {
  require_split(run, source.split, source.dataset);
  const datasets::Splits data = load_data(run, source.dataset, source.data_dir, true);
  const datasets::Dataset& split = split_of(data, source.split);
  const bool all = words.empty();
  for (std::int64_t i = 0; all && i < split.size(); ++i) {
    words.push_back(std::to_string(i));
    numbers.push_back(i);
  }
  AskedPictures pictures{.data = as_usage([&] { return datasets::examples_at(split, numbers); })};
  const std::span<const std::int32_t> labels =
      pictures.data.has_classes() ? pictures.data.labels.values<std::int32_t>() : std::span<const std::int32_t>();
  for (std::size_t i = 0; i < words.size(); ++i)
    pictures.asked.push_back({.word = words[i],
                              .number = numbers[i],
                              .label = !labels.empty() && labels[i] >= 0 ? std::optional(labels[i]) : std::nullopt,
                              .file = pictures.data.file_of(static_cast<std::int64_t>(i)),
                              .first = static_cast<std::int64_t>(i)});
  return pictures;
}

/// Files take on the size, the colour and the grid that the network knows.
AskedPictures pictures_from_files(const RunSource& run, const std::vector<std::string>& files) {
  if (!recorded_input(run))
    throw UsageError(concat(
        "the run's data are numbers, not pictures, and ", printable(files.front()),
        " is no number of an example: --dataset asks for all examples of a file or a folder, or for those whose numbers are given"));
  const TrainedOn network = trained_on(run);
  const datasets::LoadOptions how = load_options(network, std::filesystem::absolute(files.front()).string());
  const Shape example = {network.images[1], network.images[2], network.images[3]};
  const auto count = std::ssize(files);
  AskedPictures pictures{.data = {.name = "files",
                                  .images = Tensor({count, example[0], example[1], example[2]}, DType::kUInt8),
                                  .scale = datasets::scale_of(how.pictures),
                                  .zero_point = datasets::zero_point_of(how.pictures)},
                         .from_files = true};
  describe_outputs(network, pictures.data);
  std::uint8_t* pixels = pictures.data.images.values<std::uint8_t>().data();
  for (const std::string& file : files) {
    const Tensor picture = datasets::read_picture(file, how.pictures);
    if (picture.shape() != example)
      fail(std::filesystem::path(file), " is ", picture.shape(), ", the network takes ", example);
    pixels = std::ranges::copy(picture.values<std::uint8_t>(), pixels).out;
    pictures.asked.push_back({.word = file, .first = std::ssize(pictures.asked)});
  }
  return pictures;
}

bool is_of_sounds(const RunSource& run) { return recorded_of_data(run.directory, "sounds") == true; }

/// Files and folders of sounds, by the run's own front end.
AskedPictures sounds_from_files(const RunSource& run, const std::vector<std::string>& words) {
  std::vector<std::string> files;
  for (const std::string& word : words) {
    const std::vector<std::string> found = datasets::sound_files(word);
    if (found.empty()) throw UsageError(concat(quote(word), " is a folder without sounds"));
    files.insert(files.end(), found.begin(), found.end());
  }
  const TrainedOn network = trained_on(run);
  const datasets::SoundOptions front_end = run.settings.sounds.options(run.settings.dataset);
  datasets::Splits read{.train = {}, .test = datasets::read_sound_files(files, front_end)};
  datasets::standardise(read, {.standardise = network.standard != nullptr, .standard = network.standard});
  AskedPictures sounds{.data = std::move(read.test), .from_files = true};
  datasets::Dataset& data = sounds.data;
  describe_outputs(network, data);
  const std::span<const std::int32_t> recordings = data.recordings.values<std::int32_t>();
  for (const std::string& file : files) sounds.asked.push_back({.word = file, .windows = 0});
  for (std::int64_t example = data.size() - 1; example >= 0; --example) {
    AskedPicture& sound = sounds.asked[static_cast<std::size_t>(recordings[static_cast<std::size_t>(2 * example)])];
    sound.first = example;
    ++sound.windows;
  }
  return sounds;
}

void require_file(const RunSource& run, const std::string& word) {
  namespace fs = std::filesystem;
  std::error_code failure;
  const bool has_pictures = noun_of(run.directory) == std::string("picture");
  if (!is_there(word))
    throw UsageError(concat(quote(word), " is neither the number of ", has_pictures ? "a picture" : "an example",
                            " in the data set, from 0 on, nor a file"));
  if (!fs::is_directory(word, failure)) return;
  if (is_there(fs::path(word) / "config.json"))
    throw UsageError(concat("two runs are given: ", quote(word), " and ", quote(run.directory.path().string())));
  if (is_of_sounds(run)) return;
  throw UsageError(
      concat(quote(word), " is a folder: name its files, as in ", printable((fs::path(word) / "*").string())));
}

}  // namespace

std::span<const std::string_view> split_names() {
  static constexpr std::string_view kNames[] = {"test", "train", "validation"};
  return kNames;
}

const datasets::Dataset& split_of(const datasets::Splits& data, const std::string& split) {
  if (split == "validation" && !data.validation)
    throw UsageError("--split validation: there is no validation part (train --validation N holds one out)");
  if (split == "validation") return *data.validation;
  if (split == "train" && !data.train.images.defined())
    throw UsageError(concat("--split train: ", data.test.name, " has no training ", data.test.noun(),
                            "s, all are test ", data.test.noun(), "s"));
  return split == "train" ? data.train : data.test;
}

void require_split(const RunSource& run, const std::string& split, const std::string& dataset) {
  if (split != "validation") return;
  if (run.settings.validation == 0 && !datasets::is_path(run.settings.dataset))
    throw UsageError(concat("--split validation: the run in ", run.directory.path().string(),
                            " has no validation part (train --validation N holds one out)"));
  if (!dataset.empty() && resolved_dataset(dataset) != run.settings.dataset)
    throw UsageError(concat("--split validation: the validation part is of the run's own data set, ",
                            run.settings.dataset, ", not of --dataset ", dataset));
}

AskedPictures find_pictures(const RunSource& run, const std::vector<std::string>& words, const PictureSource& source) {
  const std::string noun = noun_of(run.directory);
  if (words.empty() && source.dataset.empty())
    throw UsageError(concat("no ", noun, " is given: name some by their numbers in the data set, from 0 on",
                            noun == "picture" || is_of_sounds(run) ? ", or by their files" : "",
                            "; --dataset alone asks for all of another data set"));
  std::vector<std::int64_t> numbers;
  for (const std::string& word : words) {
    if (const std::optional<std::int64_t> number = number_from(word)) {
      numbers.push_back(*number);
    } else {
      require_file(run, word);
    }
  }
  if (numbers.empty() && !words.empty()) {
    if (!source.dataset.empty()) throw UsageError(concat("--dataset is for ", noun, "s by number, not for files"));
    return is_of_sounds(run) ? sounds_from_files(run, words) : pictures_from_files(run, words);
  }
  if (numbers.size() != words.size()) throw UsageError(concat("give either numbers of ", noun, "s or files, not both"));
  return numbered_pictures(run, words, numbers, source);
}

}  // namespace miniqat::training
