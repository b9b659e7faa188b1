#pragma once

#include <optional>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "python/bindings/arguments.h"

namespace miniqat::python {

/// The arguments of miniqat.Dataset().
struct DatasetArguments {
  ArrayLike images;
  ArrayLike labels;
  std::optional<std::int64_t> classes;
  double scale = 0;
  std::int64_t zero_point = 0;
  std::vector<std::string> class_names;
};

/// A data set of copies of the arrays. Notes on what their conversion to bytes costs become warnings. Throws ValueError
/// and TypeError, which name the argument and say what helps.
datasets::Dataset dataset_of(const DatasetArguments& arguments);

/// A copy of pictures, [n, h, w, c] uint8, by the same rules; `notes` gets those on the conversion.
Tensor picture_bytes(const ArrayLike& images, std::vector<std::string>& notes);

/// Gives notes ("note: ...") as Python's UserWarnings.
void warn_in_python(const std::vector<std::string>& notes);

}  // namespace miniqat::python
