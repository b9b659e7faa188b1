#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/tensors/tensor.h"
#include "datasets/dataset.h"

namespace miniqat::datasets {

/// The parts of a data set, the training part first.
enum class Part { kTrain, kValidation, kTest };
inline constexpr Part kParts[] = {Part::kTrain, Part::kValidation, Part::kTest};

/// "training", "validation", "test"
inline const char* title_of(Part part) {
  return part == Part::kTrain ? "training" : part == Part::kTest ? "test" : "validation";
}

/// A part of a data set as a reader found it.
struct PartData {
  /// Pictures, uint8, or numbers, float32: finite, but NaN where a series was filled up (LoadOptions::numbers.pad_to).
  Tensor images;
  /// Classes by number, [n] int32; -1 where nobody knows it (LoadOptions::answers_optional).
  Tensor labels = {};
  /// Classes by name, one for each example, instead; "" where nobody knows it (LoadOptions::answers_optional).
  std::vector<std::string> classes = {};
  /// [n, k] float32, NaN where nobody knows one.
  Tensor targets = {};
  std::shared_ptr<const std::vector<std::string>> files = {};
  /// Dataset::recordings and Dataset::sounds.
  Tensor recordings = {};
  std::shared_ptr<const VariedSounds> sounds = {};
  /// The group of each example; empty where a reader found none.
  std::vector<std::string> groups = {};
};

/// The parts that there are, with what a reader found out about all of them.
struct FoundParts {
  std::map<Part, PartData> found;
  /// The names of labels by their numbers; beside classes by name, in any order, what the files announce.
  std::vector<std::string> class_names = {};
  std::vector<std::string> target_names = {};
  /// The names of the features, printable; empty where no file has any.
  std::vector<std::string> input_names = {};
  /// The data are folders of pictures, whose classes are known to the network where there is one.
  bool are_folders = false;
  FileRemarks remarks = {};
  /// The parts on whose levels the remarks have a note.
  std::set<Part> levels_said = {};
};

}  // namespace miniqat::datasets
