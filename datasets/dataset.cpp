#include "datasets/dataset.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/tensors/coded.h"
#include "core/tensors/random.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "datasets/cifar10.h"
#include "datasets/idx.h"
#include "datasets/rows.h"
#include "datasets/synthetic_digits.h"
#include "datasets/synthetic_hums.h"
#include "datasets/synthetic_sounds.h"
#include "datasets/user_files.h"

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
  const std::span<const std::int32_t> places = dataset.recordings.values<std::int32_t>();
  const auto recording = [&](std::int64_t example) { return places[static_cast<std::size_t>(2 * example)]; };
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

namespace {

using Path = std::filesystem::path;

Splits digits(const std::string&, const Path&, const LoadOptions& options) { return synthetic_digits(options); }
Splits idx(const std::string& name, const Path& data_dir, const LoadOptions& options) {
  return load_idx(name, data_dir, options.accept);
}
Splits cifar10(const std::string&, const Path& data_dir, const LoadOptions&) { return load_cifar10(data_dir); }
Splits sounds(const std::string&, const Path&, const LoadOptions& options) { return synthetic_sounds(options); }
Splits hums(const std::string&, const Path&, const LoadOptions& options) { return synthetic_hums(options); }

}  // namespace

const std::vector<KnownDataset>& known_datasets() {
  static const std::vector<KnownDataset> kDatasets = {
      {.name = "synthetic", .has_files = false, .load = digits},
      {.name = "mnist", .load = idx},
      {.name = "fashion-mnist", .load = idx},
      {.name = "cifar10", .mirrors = true, .scale = kCifar10Scale, .zero_point = kCifar10ZeroPoint, .load = cifar10},
      {.name = "synthetic-sounds",
       .has_files = false,
       .sounds = SoundOptions(),
       .snr_db = kSoundsSnrDb,
       .load = sounds},
      {.name = "synthetic-hums", .has_files = false, .sounds = anomaly_detector(), .snr_db = kHumsSnrDb, .load = hums}};
  return kDatasets;
}

std::vector<std::string> dataset_names() {
  std::vector<std::string> names;
  for (const KnownDataset& dataset : known_datasets()) names.push_back(dataset.name);
  return names;
}

const KnownDataset& find_dataset(const std::string& name) {
  for (const KnownDataset& dataset : known_datasets())
    if (dataset.name == name) return dataset;
  const std::vector<std::string> names = dataset_names();
  fail("unknown data set ", quote(name), "; known are ", joined(names),
       ", or the path of your own files (there is no folder of that name here)", did_you_mean(name, names));
}

Splits load(const std::string& name, const Path& data_dir, const LoadOptions& options) {
  if (is_path(name)) return load_user_files(name, options);
  const KnownDataset& known = find_dataset(name);
  if (options.accept_kind) options.accept_kind(known.kind());
  return known.load(name, data_dir, options);
}

}  // namespace miniqat::datasets
