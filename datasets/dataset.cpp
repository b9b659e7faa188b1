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
#include "datasets/synthetic_digits.h"
#include "datasets/user_files.h"

namespace miniqat::datasets {

Shape Dataset::example_shape() const { return Shape(images.shape().extents().subspan(1)); }

void Dataset::check() const {
  if (!images.defined() || images.dtype() != DType::kUInt8 || images.shape().rank() != 4 ||
      images.shape().elements() == 0)
    fail("data set ", name, ": images must be uint8 [n,h,w,c] and not empty");
  if (!labels.defined() || labels.dtype() != DType::kInt32 || labels.shape().rank() != 1)
    fail("data set ", name, ": labels must be int32 [n]");
  if (labels.elements() != size()) fail("data set ", name, ": ", size(), " images, but ", labels.elements(), " labels");
  try {
    require_byte_grid({scale, static_cast<float>(zero_point)});
  } catch (const Error& error) {
    fail("data set ", name, ": ", error.what());
  }
}

Dataset first_examples(const Dataset& dataset, std::int64_t n) {
  if (n >= dataset.size()) return dataset;
  const Shape& all = dataset.images.shape();
  const Shape images{n, all[1], all[2], all[3]};
  Dataset head = dataset;
  head.images = Tensor::from<std::uint8_t>(images, dataset.images.values<std::uint8_t>().first(images.elements()));
  head.labels = Tensor::from<std::int32_t>({n}, dataset.labels.values<std::int32_t>().first(n));
  if (dataset.files)
    head.files = std::make_shared<std::vector<std::string>>(dataset.files->begin(), dataset.files->begin() + n);
  return head;
}

std::string Dataset::class_name(std::int64_t number) const {
  const bool known = number >= 0 && number < std::ssize(class_names);
  return known ? class_names[static_cast<std::size_t>(number)] : std::to_string(number);
}

std::string Dataset::file_of(std::int64_t example) const {
  return files ? files->at(static_cast<std::size_t>(example)) : "";
}

Dataset examples_at(const Dataset& dataset, std::span<const std::int64_t> indices) {
  const auto count = static_cast<std::int64_t>(indices.size());
  if (count == 0) fail("data set ", dataset.name, ": no examples were asked for");
  const Shape& all = dataset.images.shape();
  const Shape example = dataset.example_shape();
  Dataset chosen = dataset;
  std::vector<std::string> files;
  chosen.images = Tensor(Shape{count, all[1], all[2], all[3]}, DType::kUInt8);
  chosen.labels = Tensor(Shape{count}, DType::kInt32);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t index = indices[static_cast<std::size_t>(i)];
    if (index < 0 || index >= dataset.size())
      fail("data set ", dataset.name, ": there is no picture ", index, ", only 0 to ", dataset.size() - 1);
    const auto bytes = dataset.images.values<std::uint8_t>().subspan(index * example.elements(), example.elements());
    std::ranges::copy(bytes, chosen.images.data<std::uint8_t>() + i * example.elements());
    chosen.labels.data<std::int32_t>()[i] = dataset.labels.values<std::int32_t>()[index];
    if (dataset.files) files.push_back(dataset.file_of(index));
  }
  if (dataset.files) chosen.files = std::make_shared<std::vector<std::string>>(std::move(files));
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

}  // namespace

const std::vector<KnownDataset>& known_datasets() {
  static const std::vector<KnownDataset> kDatasets = {
      {.name = "synthetic", .has_files = false, .load = digits},
      {.name = "mnist", .load = idx},
      {.name = "fashion-mnist", .load = idx},
      {.name = "cifar10", .mirrors = true, .scale = kCifar10Scale, .zero_point = kCifar10ZeroPoint, .load = cifar10}};
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
  return find_dataset(name).load(name, data_dir, options);
}

}  // namespace miniqat::datasets
