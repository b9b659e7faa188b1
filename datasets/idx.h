#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "datasets/dataset.h"

namespace miniqat::datasets {

// The IDX format of the MNIST family (described on the MNIST home page): a big-endian magic number (2051 images, 2049
// labels), one big-endian 32-bit extent an axis, then the bytes. Files may be raw or gzipped, whatever they are called.
//
// All of these throw Error in one line with the path: empty, truncated or surplus content, a wrong magic number,
// extents that are zero, absurd or not the file's, corrupt or truncated gzip data. No memory is taken
// on the word of a header alone.

/// [n, h, w, 1] uint8
Tensor read_idx_images(const std::filesystem::path& path);

/// [n] int32; a label that is not below `classes` throws.
Tensor read_idx_labels(const std::filesystem::path& path, int classes);

struct IdxPair {
  Tensor images;
  Tensor labels;
};

/// Images and labels. Throws also if their headers differ in number; these are compared before anything is expanded.
IdxPair read_idx_pair(const std::filesystem::path& images, const std::filesystem::path& labels, int classes);

/// What the magic number of a file says, expanded if it is gzipped; kNone also for a file that cannot be read.
enum class IdxKind { kNone, kImages, kLabels };
IdxKind idx_kind(const std::filesystem::path& path);

/// Both splits, ten classes, scale 1/255: train-images-idx3-ubyte, train-labels-idx1-ubyte and the same for t10k, or
/// with a dot before "idx", each with or without .gz (raw preferred). `data_dir` as in load(). Also throws if images
/// and labels differ in number, if the splits differ in the size of their images, and whatever `accept` throws (see
/// LoadOptions). The headers show these before anything is expanded. Throws for files of Fashion-MNIST as `mnist`, and
/// the other way round.
Splits load_idx(const std::string& name, const std::filesystem::path& data_dir,
                const std::function<void(const Shape& example)>& accept = {});

}  // namespace miniqat::datasets
