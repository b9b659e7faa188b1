#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/tensors/tensor.h"
#include "datasets/file_cache.h"
#include "datasets/picture_options.h"
#include "datasets/pictures/class_folders.h"

namespace miniqat::datasets {

/// The decoded pictures of a folder (FileCache). Whether a file is still broken is looked up.
class PictureCache {
 public:
  PictureCache(const ClassFolders& folders, const PictureOptions& options);

  struct Kept {
    /// [n, h, w, c]
    Tensor images;
    /// The places of files that could not be read, whose pictures are zeros.
    std::vector<std::int64_t> broken = {};
  };

  /// What FileCache::kept() and FileCache::keep() say.
  std::optional<Kept> kept() const;
  void keep(const Kept& pictures) const;

 private:
  const std::int64_t count_;
  FileCache cache_;
};

}  // namespace miniqat::datasets
