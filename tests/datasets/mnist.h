#pragma once

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "tests/source_dir.h"

namespace miniqat::testing {

/// The real MNIST: in $MINIQAT_DATA_DIR or its subfolder `mnist`, else beside the source tree. Empty where neither
/// holds it, as in a clone of the repository alone; a test that needs it skips itself then, with kNoMnist.
inline std::filesystem::path mnist_folder() {
  std::vector<std::filesystem::path> candidates;
  if (const char* given = std::getenv("MINIQAT_DATA_DIR"); given != nullptr && *given != '\0')
    candidates = {std::filesystem::path(given) / "mnist", given};
  candidates.push_back(source_dir() / "../shared/datasets/mnist");
  for (const std::filesystem::path& folder : candidates)
    for (const char* file :
         {"t10k-images-idx3-ubyte.gz", "t10k-images-idx3-ubyte", "t10k-images.idx3-ubyte.gz", "t10k-images.idx3-ubyte"})
      if (std::filesystem::exists(folder / file)) return std::filesystem::absolute(folder);
  return {};
}

inline constexpr const char* kNoMnist =
    "MNIST is neither in $MINIQAT_DATA_DIR, nor in its subfolder mnist, nor in ../shared/datasets/mnist";

}  // namespace miniqat::testing
