#include "datasets/pictures/picture_cache.h"

#include <algorithm>

#include "core/text/error.h"

namespace miniqat::datasets {
namespace {

/// A change of decoding or resizing makes old caches worthless.
constexpr int kVersion = 3;
constexpr const char* kImages = "images";
/// Places of broken files, int64; left out where there are none.
constexpr const char* kBroken = "broken";

}  // namespace

PictureCache::PictureCache(const ClassFolders& folders, const PictureOptions& options)
    : count_(std::ssize(folders.files)),
      cache_("pictures", folders.folder,
             concat("miniqat pictures ", kVersion, ", ", options.height, " x ", options.width, ", colour ",
                    static_cast<int>(options.colour))) {
  for (const PictureFile& file : folders.files) cache_.depend_on(file.path);
}

std::optional<PictureCache::Kept> PictureCache::kept() const {
  const NamedTensors kept = cache_.kept();
  if (!kept.contains(kImages)) return {};
  const Tensor& images = kept.at(kImages);
  if (images.dtype() != DType::kUInt8 || images.shape().rank() != 4 || images.shape()[0] != count_) return {};
  const auto broken = kept.find(kBroken);
  if (broken == kept.end()) return Kept{.images = images};
  if (broken->second.dtype() != DType::kInt64) return {};
  const auto indices = broken->second.values<std::int64_t>();
  if (std::ranges::any_of(indices, [&](std::int64_t i) { return i < 0 || i >= count_; })) return {};
  return Kept{.images = images, .broken = {indices.begin(), indices.end()}};
}

void PictureCache::keep(const Kept& pictures) const {
  cache_.keep([&] {
    NamedTensors tensors = {{kImages, pictures.images}};
    if (!pictures.broken.empty())
      tensors.emplace(kBroken, Tensor::from<std::int64_t>({std::ssize(pictures.broken)}, pictures.broken));
    return tensors;
  });
}

}  // namespace miniqat::datasets
