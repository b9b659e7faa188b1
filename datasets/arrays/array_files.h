#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

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

/// The names of the .npy files in a folder, without ".npy".
std::vector<std::string> npy_names(const std::filesystem::path& folder);

}  // namespace miniqat::datasets
