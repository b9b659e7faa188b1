#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/tensors/tensor.h"
#include "datasets/standard.h"

namespace miniqat::datasets {

class VariedSounds;

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
  /// What `targets` have been standardised with.
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

}  // namespace miniqat::datasets
