#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "core/files/safetensors.h"

namespace miniqat::datasets {

/// What the files of a folder were decoded to, in one file, which saves decoding as long as nothing changed: the files
/// with their sizes and times, and what is said about the tensors. Without a place to keep it, all of this does
/// nothing. Several processes may read and write the same file.
class FileCache {
 public:
  /// The file is in $MINIQAT_CACHE_DIR, else $XDG_CACHE_HOME/miniqat, else ~/.cache/miniqat; one for each folder and
  /// kind, so that it never piles up. `about`: the version of the tensors, and all settings that they depend on.
  FileCache(const std::string& kind, const std::filesystem::path& folder, const std::string& about);

  /// Adds a file of the folder that the tensors depend on, by its size and time of now.
  void depend_on(const std::filesystem::path& file);

  /// Empty if nothing is kept, or what other files or settings gave, or if the cache cannot be read or is damaged.
  NamedTensors kept() const;

  /// Keeps what `made` returns for the next time. Too little memory, or a place that cannot be written, is no error.
  void keep(const std::function<NamedTensors()>& made) const;

 private:
  const std::filesystem::path folder_;
  std::filesystem::path file_;
  /// What the tensors were made of, line by line.
  std::string manifest_;
};

}  // namespace miniqat::datasets
