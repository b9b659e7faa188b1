#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/tensors/tensor.h"
#include "datasets/arrays/npy.h"

namespace miniqat::datasets {

/// Arrays of pictures and labels by their names: those of Keras ("x_train", "y_train"), of MedMNIST ("train_images",
/// "train_labels"), or of one split alone ("images" and "labels", "x" and "y", "data" and "target").
struct ArrayPair {
  std::string images;
  std::string labels;
};

/// Which of the names hold which split.
struct ArrayNames {
  std::optional<ArrayPair> train;
  std::optional<ArrayPair> validation;
  std::optional<ArrayPair> test;
};

/// Finds pairs among the names. Nothing is found where one of a pair is missing.
ArrayNames find_arrays(const std::vector<std::string>& names);

/// Finds arrays whose examples need no labels: their name is "" then. (For numbers; pictures have labels.)
ArrayNames find_arrays_of_numbers(const std::vector<std::string>& names);

/// The names of the .npy files in a folder, without ".npy".
std::vector<std::string> npy_names(const std::filesystem::path& folder);

/// Pictures out of [n, h, w], [n, h, w, 1] or [n, h, w, 3] numbers: integers in [0, 255], bools (true becomes 255), or
/// floats that are either all in [0, 1] (1 becomes 255) or all whole numbers in [0, 255]. Result: [n, h, w, c] uint8.
/// Throws Error in one line that names `source`. If rounding to bytes costs anything, `notes`, unless null, gets a line
/// that says how much, and how many levels are left.
Tensor pictures_of(const NumpyArray& array, const std::string& source, std::vector<std::string>* notes = nullptr);

/// Labels out of [n] or [n, 1] integers that are not negative. Result: [n] int32. Throws Error that names `source`, and
/// ends with `otherwise`.
Tensor labels_of(const NumpyArray& array, const std::string& source, const char* otherwise = "");

}  // namespace miniqat::datasets
