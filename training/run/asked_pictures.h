#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/dataset.h"
#include "training/run/run_source.h"

namespace miniqat::training {

/// What `--split` takes: "test", "train", "validation".
std::span<const std::string_view> split_names();

/// The pictures of one of these. Throws UsageError for a part that the data have not.
const datasets::Dataset& split_of(const datasets::Splits& data, const std::string& split);

/// Throws UsageError for the validation part of a run that has none, or of another data set than the run's: it is what
/// a run held out of its own training pictures, or what its own files have. `dataset` is "" for the run's own.
void require_split(const RunSource& run, const std::string& split, const std::string& dataset);

/// Where numbered pictures come from.
struct PictureSource {
  /// "": the run's own data set.
  std::string dataset = {};
  std::string data_dir = {};
  /// One of split_names().
  std::string split = "test";
};

struct AskedPicture {
  /// The word by which it was asked for.
  std::string word;
  /// The picture's number in the data set; none of a file.
  std::optional<std::int64_t> number = {};
  /// None where nobody knows it.
  std::optional<std::int32_t> label = {};
  /// The file of a numbered picture, if it is one: Dataset::file_of().
  std::string file = {};
  /// The first of its examples, and how many there are: the windows of a sound.
  std::int64_t first = 0;
  std::int64_t windows = 1;
};

struct AskedPictures {
  /// In the order of the words.
  std::vector<AskedPicture> asked = {};
  /// The pictures as examples for a network. Their answers may be unknown (LoadOptions::answers_optional).
  datasets::Dataset data;
  bool from_files = false;
};

/// The pictures that the words name: "5" is the picture of that number, from 0, in `source`; other words are JPEG or
/// PNG files, which take on the size, the colour and the grid of the network's pictures and have no label. For a run
/// that learned sounds they are sound files, or folders of these, which the run's own front end reads. No word asks for
/// all of PictureSource::dataset. Throws UsageError for no word without it, for one that names no picture, for a folder
/// of pictures and for numbers beside files, and what load_data(), decode_picture() and read_sound_files() throw.
AskedPictures find_pictures(const RunSource& run, const std::vector<std::string>& words, const PictureSource& source);

}  // namespace miniqat::training
