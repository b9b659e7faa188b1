#pragma once

#include <filesystem>

namespace miniqat::testing {

/// The real MNIST, where it lies beside the source tree; a test that needs it skips itself where the folder is not
/// there.
inline std::filesystem::path mnist_folder() {
  return std::filesystem::path(MINIQAT_SOURCE_DIR) / "../shared/datasets/mnist";
}

}  // namespace miniqat::testing
