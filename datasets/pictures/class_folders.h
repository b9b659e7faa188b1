#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace miniqat::datasets {

struct PictureFile {
  std::filesystem::path path;
  /// An index into the classes.
  int label = 0;
  /// What is in the place of a file that can be opened: "is a FIFO, no file", say. "": such a file.
  std::string trouble = {};
};

/// Numbers of files by their endings in lower case.
using EndingCounts = std::map<std::string, std::int64_t>;

/// A folder with a folder of pictures for each class.
struct ClassFolders {
  std::filesystem::path folder;
  /// The folders' names in order: as numbers if all are, else by their bytes.
  std::vector<std::string> classes;
  /// Files named like pictures, by their paths inside the class folders and then by class: files numbered through all
  /// classes come in the order of their numbers.
  std::vector<PictureFile> files;
  /// Files inside the class folders that are not named like pictures.
  EndingCounts left_out = {};
  /// The folder of the whole data set, which may have several of these.
  std::filesystem::path root = folder;

  /// The path of a file in the data set.
  std::string name_of(const PictureFile& file) const { return file.path.lexically_relative(root).string(); }
};

/// "3 .gif, 2 .tiff files and 1 file without an ending": the most frequent first, rare ones of many together.
std::string text_of(const EndingCounts& counts);

/// The names of the folders in it, without hidden ones, in the order of classes. Throws Error for a name that is not
/// UTF-8.
std::vector<std::string> folders_in(const std::filesystem::path& folder);

/// Lists pictures by their endings (picture_endings()), in any case, at any depth of a class folder. Links to nothing,
/// FIFOs, sockets and devices that are named so are listed, with their trouble; so are links to nothing without an
/// ending, which may have led to folders. Hidden files are left out, others are counted. Nothing is opened. Throws
/// Error for a folder that cannot be read, and names a class without pictures.
ClassFolders list_class_folders(const std::filesystem::path& folder);

/// The class folders when the classes are those of `known`, which may have more. Throws Error that names a class that
/// is not among them; `unknown_to` says who has these classes: "which the network does not know".
ClassFolders list_class_folders(const std::filesystem::path& folder, const std::vector<std::string>& known,
                                const std::string& unknown_to);

}  // namespace miniqat::datasets
