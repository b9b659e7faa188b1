#include "datasets/dataset.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/tensors/coded.h"
#include "core/tensors/random.h"
#include "core/text/error.h"
#include "datasets/rows.h"

namespace miniqat::datasets {

Shape Dataset::example_shape() const { return Shape(images.shape().extents().subspan(1)); }

void Dataset::check() const {
  const bool are_numbers = images.defined() && images.dtype() == DType::kFloat32;
  const auto rank = images.defined() ? images.shape().rank() : 0;
  if (!images.defined() || images.shape().elements() == 0 || (are_numbers ? rank < 2 || rank > 4 : rank != 4) ||
      (!are_numbers && images.dtype() != DType::kUInt8))
    fail("data set ", name, ": images must be uint8 [n,h,w,c], or float32 of rank 2 to 4, and not empty");
  if (labels.defined() && (labels.dtype() != DType::kInt32 || labels.shape().rank() != 1))
    fail("data set ", name, ": labels must be int32 [n]");
  if (targets.defined() && (targets.dtype() != DType::kFloat32 || targets.shape().rank() != 2))
    fail("data set ", name, ": targets must be float32 [n, k]");
  if (groups.defined() && (groups.dtype() != DType::kInt32 || groups.shape().rank() != 1))
    fail("data set ", name, ": groups must be int32 [n]");
  if (recordings.defined() && (recordings.dtype() != DType::kInt32 || recordings.shape().rank() != 2))
    fail("data set ", name, ": recordings must be int32 [n, 2]");
  for (const auto& [tensor, what] :
       {std::pair(&labels, "labels"), {&targets, "targets"}, {&groups, "groups"}, {&recordings, "recordings"}})
    if (tensor->defined() && tensor->shape()[0] != size())
      fail("data set ", name, ": ", size(), " ", has_pictures() ? "images" : "examples", ", but ", tensor->shape()[0],
           " ", what);
  try {
    require_byte_grid({scale, static_cast<float>(zero_point)});
  } catch (const Error& error) {
    fail("data set ", name, ": ", error.what());
  }
}

Dataset first_examples(const Dataset& dataset, std::int64_t n) {
  if (n >= dataset.size()) return dataset;
  std::vector<std::int64_t> indices(static_cast<std::size_t>(n));
  std::iota(indices.begin(), indices.end(), std::int64_t{0});
  return examples_at(dataset, indices);
}

Dataset first_recordings(const Dataset& dataset, std::int64_t n) {
  if (!dataset.recordings.defined()) return first_examples(dataset, n);
  const std::span<const std::int32_t> recordings = dataset.recordings.values<std::int32_t>();
  const auto recording = [&](std::int64_t example) { return recordings[static_cast<std::size_t>(2 * example)]; };
  std::int64_t end = n;
  while (end < dataset.size() && recording(end) == recording(n - 1)) ++end;
  return first_examples(dataset, end);
}

std::string Dataset::class_name(std::int64_t number) const {
  const bool known = number >= 0 && number < std::ssize(class_names);
  return known ? class_names[static_cast<std::size_t>(number)] : std::to_string(number);
}

std::string Dataset::file_of(std::int64_t example) const {
  return files ? files->at(static_cast<std::size_t>(example)) : "";
}

Dataset examples_at(const Dataset& dataset, std::span<const std::int64_t> indices) {
  if (indices.empty()) fail("data set ", dataset.name, ": no examples were asked for");
  for (const std::int64_t index : indices)
    if (index < 0 || index >= dataset.size())
      fail("data set ", dataset.name, ": there is no ", dataset.noun(), " ", index, ", only 0 to ", dataset.size() - 1);
  Dataset chosen = dataset;
  for (Tensor Dataset::*part :
       {&Dataset::images, &Dataset::labels, &Dataset::targets, &Dataset::groups, &Dataset::recordings})
    chosen.*part = rows_at(dataset.*part, indices);
  if (dataset.files) {
    std::vector<std::string> files;
    for (const std::int64_t index : indices) files.push_back(dataset.file_of(index));
    chosen.files = std::make_shared<std::vector<std::string>>(std::move(files));
  }
  return chosen;
}

Dataset drawn_examples(const Dataset& dataset, std::int64_t n, std::uint64_t seed) {
  if (n >= dataset.size()) return dataset;
  std::vector<std::int64_t> indices(static_cast<std::size_t>(dataset.size()));
  std::iota(indices.begin(), indices.end(), std::int64_t{0});
  Random random(mix(hash_text("datasets/drawn_examples"), seed));
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i)
    std::swap(indices[i], indices[i + random.below(indices.size() - i)]);
  indices.resize(static_cast<std::size_t>(n));
  std::ranges::sort(indices);
  return examples_at(dataset, indices);
}

FileRemarks Splits::remarks() const {
  const std::shared_ptr<const FileRemarks>& found = test.remarks ? test.remarks : train.remarks;
  return found ? *found : FileRemarks();
}

}  // namespace miniqat::datasets
