#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "tests/temp_dir.h"

namespace miniqat::testing {

/// Pictures of 8x8 in the four files of the MNIST family, so that a run takes milliseconds: `train` and `test` of them,
/// of ten classes that a small network can tell apart. Returns the directory, `name` in `place`.
std::filesystem::path write_tiny_digits(const TempDir& place, const std::string& name, int train, int test);

/// Graph JSON of a classifier for them: conv 3x3 of 4 channels, Relu, max pool, dropout, dense 10; batches of 4.
std::string tiny_classifier();

}  // namespace miniqat::testing
