#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/tensors/tensor.h"
#include "datasets/decoding.h"
#include "datasets/picture_options.h"
#include "datasets/pictures/class_folders.h"

namespace miniqat::datasets {

/// Why files cannot be read, in words that name them, by their places in ClassFolders::files.
using BrokenFiles = std::map<std::int64_t, std::string>;

/// The shape [h, w, c] that the pictures get: of the options, or of the files, which must then agree. Reads the head of
/// every file unless the options say it all; a file without a right one becomes `broken`, as one with a trouble of its
/// own does. None where all are broken. Throws Error that names two files of different sizes.
std::optional<Shape> shape_of_pictures(const ClassFolders& folders, const PictureOptions& options, BrokenFiles& broken);

/// Decodes them all on all threads: [n, h, w, c] uint8. Tells of its progress (datasets/decoding.h). A file that
/// is no picture, damaged, or has another size where the options give none becomes `broken`, and its picture zeros;
/// those that are there already are not opened. Processes decode a part each: all read the same names of files as
/// pictures of one shape, and know the same broken files before and after.
Tensor read_pictures(const ClassFolders& folders, const Shape& shape, const PictureOptions& options,
                     BrokenFiles& broken, SharedDecoding& with = lone_decoding());

/// Decodes some of them again into `images`, all of read_pictures(). Returns those that are broken.
BrokenFiles read_again(const ClassFolders& folders, const std::vector<std::int64_t>& files,
                       const PictureOptions& options, Tensor& images);

/// [n] int32
Tensor labels_of(const ClassFolders& folders);

}  // namespace miniqat::datasets
