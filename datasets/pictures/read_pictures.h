#pragma once

#include "core/tensor.h"
#include "datasets/picture_options.h"
#include "datasets/pictures/class_folders.h"
#include "datasets/shared_decoding.h"

namespace miniqat::datasets {

/// The shape [h, w, c] that the pictures get: of the options, or of the files, which must then agree. Reads the head of
/// every file unless the options say it all. Throws Error that names two files of different sizes.
Shape shape_of_pictures(const ClassFolders& folders, const PictureOptions& options);

/// Decodes them all on all threads: [n, h, w, c] uint8. Tells of its progress (datasets/decode_progress.h). Throws
/// Error naming the first file, in their order, that is no picture, damaged, or has another size where the options give
/// none.
Tensor read_pictures(const ClassFolders& folders, const Shape& shape, const PictureOptions& options);

/// The same with other processes, a part each: all read the same names of files as pictures of one shape. The error
/// names the first file of this process's part.
Tensor read_pictures(const ClassFolders& folders, const Shape& shape, const PictureOptions& options,
                     SharedDecoding& with);

/// [n] int32
Tensor labels_of(const ClassFolders& folders);

}  // namespace miniqat::datasets
