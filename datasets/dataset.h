#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/tensors/tensor.h"
#include "datasets/data_kind.h"
#include "datasets/number_options.h"
#include "datasets/picture_options.h"
#include "datasets/sound/features.h"
#include "datasets/sound/variation.h"
#include "datasets/standard.h"

namespace miniqat::datasets {

/// More classes than that are taken for a mistake in a file.
inline constexpr std::int64_t kMostClasses = 65536;

/// A file that was to be a picture, cannot be read, and was left out.
struct SkippedFile {
  /// Inside the data set's folder.
  std::string file;
  /// In one line, for people.
  std::string why;
};

/// What a reader has to say about the files of a data set.
struct FileRemarks {
  /// For people: lines that begin with "note: ".
  std::vector<std::string> notes = {};
  /// All of them, by parts and then in the order of files; only with LoadOptions::skip_broken.
  std::vector<SkippedFile> skipped = {};
};

/// Examples with what a network is to say of them: classes, or numbers, or nothing. Copies share the elements.
struct Dataset {
  std::string name;
  /// Pictures, [n, h, w, c] uint8: bytes as the files have them. The byte itself is the quantized input of a network,
  /// pixel = (byte - zero_point) * scale. Or float32 numbers, [n, ...] of rank 2 to 4, channels last.
  Tensor images{};
  /// [n] int32, each in [0, classes); undefined where the data have no classes. -1 where nobody knows it, which only
  /// LoadOptions::answers_optional allows.
  Tensor labels{};
  int classes = 10;
  float scale = 1.0f / 255;
  int zero_point = 0;
  /// One for each class, if the data names them.
  std::vector<std::string> class_names{};
  /// [n, k] float32: numbers to predict, or 0 and 1 for k labels of which several may hold. Undefined where the data
  /// have none, NaN where nobody knows one (as for labels).
  Tensor targets{};
  /// One for each column of `targets`, if the data names them.
  std::vector<std::string> target_names{};
  /// One for each feature, the last axis of `images`, if a table names them.
  std::vector<std::string> input_names{};
  /// What numbers have been standardised with; null for bytes, and where they are as the files have them.
  std::shared_ptr<const Standard> standard{};
  /// The same of `targets`.
  std::shared_ptr<const Standard> target_standard{};
  /// [n] int32: the group of each example, which no split takes apart. Undefined: each example is for itself.
  Tensor groups{};
  /// The groups by their numbers, if the data name them.
  std::vector<std::string> group_names{};
  /// [n, 2] int32: the recording that each example is cut out of, by a number in its part, and its first step there.
  /// Undefined where examples are no sounds.
  Tensor recordings{};
  /// The recordings themselves, if there is something to be varied in them.
  std::shared_ptr<const VariedSounds> sounds{};
  /// Where each example is a file: their paths inside the data set's folder, one for each. Null otherwise.
  std::shared_ptr<const std::vector<std::string>> files{};
  /// On all the files that were read together with these. Null: there is nothing to say.
  std::shared_ptr<const FileRemarks> remarks{};

  std::int64_t size() const { return images.shape()[0]; }
  /// The shape of one example: [h, w, c] of pictures.
  Shape example_shape() const;
  bool has_pictures() const { return images.dtype() == DType::kUInt8; }
  bool has_classes() const { return labels.defined(); }
  /// An example in words: "picture" or "example".
  const char* noun() const { return has_pictures() ? "picture" : "example"; }
  /// What a class is called in tables, reports and JSON: its name, or its number, which is the label.
  std::string class_name(std::int64_t number) const;
  /// The file of an example in 0 .. size() - 1; "" where examples are no files.
  std::string file_of(std::int64_t example) const;
  /// Throws Error unless the tensors have the ranks, types and equal counts given above and there is an example, the
  /// scale is positive and finite, and the zero point is a byte. Labels, numbers and targets are not read.
  void check() const;
};

/// The first n of them, copied (all, shared, when there are no more). n >= 1.
Dataset first_examples(const Dataset& dataset, std::int64_t n);

/// The same, with the windows behind them that are of the recording of the last: a recording is measured as a whole.
Dataset first_recordings(const Dataset& dataset, std::int64_t n);

/// Copies of the examples with the given indices, in the order given. Throws Error for an index out of range and for no
/// index.
Dataset examples_at(const Dataset& dataset, std::span<const std::int64_t> indices);

/// n of them (all, shared, when there are no more), drawn without repetition, in their order. n >= 1.
Dataset drawn_examples(const Dataset& dataset, std::int64_t n, std::uint64_t seed);

struct Splits {
  Dataset train;
  Dataset test;
  /// Held out of `train` for choosing things (hold_out.h); readers give none.
  std::optional<Dataset> validation = {};

  /// On the files of all parts, as each part has them; empty where there is nothing to say.
  FileRemarks remarks() const;
};

struct LoadOptions {
  // The seed and size of data sets that the program draws; those read from files have their own sizes.

  /// Chooses the handwriting, say. Not the seed of a training run: runs with several seeds share one data set.
  std::uint64_t seed = 1;
  /// Pictures or recordings; none: the data set's own number.
  std::optional<std::int64_t> train_size = {};
  std::optional<std::int64_t> test_size = {};
  /// The power of drawn sounds above that of the noise around them, in decibels; none: the data set's own.
  std::optional<double> snr_db = {};

  /// Given the shape [h, w, c] of the pictures of IDX files, whose size is free, as soon as the headers tell it and
  /// before any picture is expanded: who wants others may throw. (A small .gz can hold gigabytes.) Also given the shape
  /// of an example of a user's own files, which for numbers has a rank of 1 to 3.
  std::function<void(const Shape& example)> accept = {};
  /// Given what the data are as soon as that is known, for folders before any file is read: who wants others may throw.
  std::function<void(DataKind kind)> accept_kind = {};

  // For a user's own files (user_files.h).

  PictureOptions pictures = {};
  NumberOptions numbers = {};
  /// The front end of sounds; none: the data set's own, SoundOptions() of folders.
  std::optional<SoundOptions> sounds = {};
  /// Varies the sounds of the training part, if a loader is asked for it.
  SoundVariation variation = {};
  /// A network that is there already may know more classes than the files show.
  int least_classes = 0;
  /// If not empty, the classes by their numbers: folders of pictures must be called so, and may be fewer. Without names
  /// the folders of a network with `least_classes` must be called "0", "1", ...
  std::vector<std::string> class_names = {};
  // Whose part for training is missing has an empty one, without tensors.

  /// Test pictures without training pictures will do.
  bool train_optional = false;
  /// Files without parts are test pictures as a whole, instead of one in six.
  bool whole_as_test = false;
  /// Examples are to be answered, not compared: labels, and columns with what is to be predicted, may be missing, and
  /// so may single ones of their values.
  bool answers_optional = false;
  /// Files in folders of pictures that are broken (which includes links to nothing, FIFOs and devices) are left out and
  /// remarked on; otherwise they are an error. The split and the order of the others do not depend on it.
  bool skip_broken = false;
};

/// A data set that has a name.
struct KnownDataset {
  std::string name;
  /// It is read from files; otherwise LoadOptions decide.
  bool has_files = true;
  /// A picture that is shifted and mirrored shows the same thing. Not so digits.
  bool mirrors = false;
  /// The grid of its pictures, as in Dataset.
  float scale = 1.0f / 255;
  int zero_point = 0;
  /// The front end of sounds that the program draws, and their power over that of the noise; none for pictures.
  std::optional<SoundOptions> sounds = {};
  double snr_db = 0;
  Splits (*load)(const std::string& name, const std::filesystem::path& data_dir, const LoadOptions& options);

  DataKind kind() const { return sounds ? DataKind::kDrawnSounds : DataKind::kNamedPictures; }
};

/// All of them, the default first.
const std::vector<KnownDataset>& known_datasets();

/// The names of the known data sets, in the same order.
std::vector<std::string> dataset_names();

/// Throws Error that lists the names when `name` is none of them, and says that a path could be given.
const KnownDataset& find_dataset(const std::string& name);

/// Both splits of a data set by name, or of a user's own files by their path (user_files.h). Named ones that live in
/// files are read from `data_dir` or, when it is empty, from the directory in the environment variable
/// MINIQAT_DATA_DIR: from its subfolder called `name` if there is one. Throws Error in one line: an unknown name with
/// the known ones; a missing directory or file with what was looked for and where; a malformed file with its path and
/// what is wrong.
Splits load(const std::string& name, const std::filesystem::path& data_dir = {}, const LoadOptions& options = {});

}  // namespace miniqat::datasets
