#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/tensors/tensor.h"
#include "datasets/dataset.h"
#include "datasets/load_options.h"

namespace miniqat::datasets {

/// A part's pictures [n, h, w, c] uint8, labels [n] int32 and the files, inside the data set's folder, of each.
struct PartPictures {
  Tensor images;
  Tensor labels;
  std::shared_ptr<const std::vector<std::string>> files = {};
};

struct PartsOfFolders {
  std::vector<PartPictures> parts = {};
  std::vector<std::string> class_names = {};
  /// The pictures of skipped files are among the parts', as zeros: who parts them first and drops these then does not
  /// move the others.
  FileRemarks remarks = {};
};

/// Reads the parts of a data set in `root`, the training part first: folders with a folder of pictures for each class.
/// The first part settles classes, unless the options know them, and a colour that the options leave open; a size that
/// they leave open must be the same within a part. Shares the work with other processes (decoding.h), and keeps
/// the pictures (picture_cache.h). Throws Error in one line: for classes that do not fit, what list_class_folders()
/// throws, for pictures of several sizes, for links to nothing in place of folders, and for broken files, of which it
/// names the first and counts all. With LoadOptions::skip_broken only for a class of which nothing is left.
PartsOfFolders read_part_folders(const std::filesystem::path& root, const std::vector<std::filesystem::path>& folders,
                                 const LoadOptions& options);

}  // namespace miniqat::datasets
