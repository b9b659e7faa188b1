#pragma once

#include <filesystem>

#include "datasets/dataset.h"

namespace miniqat::datasets {

/// The grid of its pictures, so that a pixel is about (byte - mean) / deviation.
inline constexpr float kCifar10Scale = 1.0f / 64;
inline constexpr int kCifar10ZeroPoint = 128;

/// CIFAR-10's binary version (described on its home page): data_batch_1.bin to data_batch_5.bin are the train split,
/// test_batch.bin the test split, in `data_dir` (as in load()) or its subfolder cifar-10-batches-bin. A record is a
/// label byte and a red, a green and a blue plane of 32x32 bytes. Images become [n, 32, 32, 3]; scale 1/64, zero point
/// 128. Throws Error in one line with the path for missing or empty files, a length that is no multiple of a record's
/// 3073 bytes or more than 2 GiB, and labels above 9.
Splits load_cifar10(const std::filesystem::path& data_dir);

}  // namespace miniqat::datasets
