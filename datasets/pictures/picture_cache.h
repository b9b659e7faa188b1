#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/tensors/tensor.h"
#include "datasets/picture_options.h"
#include "datasets/pictures/class_folders.h"

namespace miniqat::datasets {

/// Decoded pictures beside each other in one file, which saves decoding as long as nothing changed: the list of files
/// with their sizes and times, and the options. (Whether a file is still broken is looked up.) Without a folder to keep
/// it in, all of this does nothing.
class PictureCache {
 public:
  /// The file is in $MINIQAT_CACHE_DIR, else $XDG_CACHE_HOME/miniqat, else ~/.cache/miniqat; one for each folder of
  /// pictures, so that it never piles up.
  PictureCache(const ClassFolders& folders, const PictureOptions& options);

  struct Kept {
    /// [n, h, w, c]
    Tensor images;
    /// The places of files that could not be read, whose pictures are zeros.
    std::vector<std::int64_t> broken = {};
  };

  /// None if they are not there, or are those of other files or options, or if the file cannot be read or is damaged.
  std::optional<Kept> kept() const;

  /// Keeps them for the next time. A folder that cannot be written is no error: the pictures are there already.
  void keep(const Kept& pictures) const;

 private:
  std::filesystem::path file_;
  std::int64_t count_;
  /// What the pictures were made of, line by line.
  std::string manifest_;
};

}  // namespace miniqat::datasets
