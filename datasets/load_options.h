#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/tensors/packed.h"
#include "core/tensors/shape.h"
#include "datasets/data_kind.h"
#include "datasets/number_options.h"
#include "datasets/picture_options.h"
#include "datasets/sound/features.h"
#include "datasets/sound/variation.h"

namespace miniqat::datasets {

/// What readers are asked for.
struct LoadOptions {
  // The seed and size of data sets that the program draws; those read from files have their own sizes.

  /// Chooses the handwriting, say. Not the seed of a training run: runs with several seeds share one data set.
  std::uint64_t seed = 1;
  /// Pictures or recordings; none: the data set's own number.
  std::optional<std::int64_t> train_size = {};
  std::optional<std::int64_t> test_size = {};
  /// The power of drawn sounds above that of the noise around them, in decibels; none: the data set's own.
  std::optional<double> snr_db = {};

  /// The grid of a network's pictures, which those of a data set that has a name get instead of their own.
  std::optional<CodeGrid> grid = {};

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
  /// Test examples may be of a class that the files announce, but have no training example of.
  bool unlearnt_classes = false;
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

}  // namespace miniqat::datasets
