#include "datasets/dataset.h"

#include "core/error.h"
#include "core/suggest.h"
#include "datasets/cifar10.h"
#include "datasets/idx.h"
#include "datasets/synthetic_digits.h"

namespace miniqat::datasets {

Shape Dataset::example_shape() const { return Shape(images.shape().extents().subspan(1)); }

void Dataset::check() const {
  if (!images.defined() || images.dtype() != DType::kUInt8 || images.shape().rank() != 4 ||
      images.shape().elements() == 0)
    fail("data set ", name, ": images must be uint8 [n,h,w,c] and not empty");
  if (!labels.defined() || labels.dtype() != DType::kInt32 || labels.shape().rank() != 1)
    fail("data set ", name, ": labels must be int32 [n]");
  if (labels.elements() != size()) fail("data set ", name, ": ", size(), " images, but ", labels.elements(), " labels");
}

Dataset first_examples(const Dataset& dataset, std::int64_t n) {
  if (n >= dataset.size()) return dataset;
  const Shape& all = dataset.images.shape();
  const Shape images{n, all[1], all[2], all[3]};
  Dataset head = dataset;
  head.images = Tensor::from<std::uint8_t>(images, dataset.images.values<std::uint8_t>().first(images.elements()));
  head.labels = Tensor::from<std::int32_t>({n}, dataset.labels.values<std::int32_t>().first(n));
  return head;
}

const std::vector<std::string>& dataset_names() {
  static const std::vector<std::string> names = {"synthetic", "mnist", "fashion-mnist", "cifar10"};
  return names;
}

Splits load(const std::string& name, const std::filesystem::path& data_dir, const LoadOptions& options) {
  if (name == "synthetic") return synthetic_digits(options);
  if (name == "mnist" || name == "fashion-mnist") return load_idx(name, data_dir, options.accept);
  if (name == "cifar10") return load_cifar10(data_dir);
  fail(unknown_name("data set", name, dataset_names()));
}

}  // namespace miniqat::datasets
