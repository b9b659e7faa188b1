#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace miniqat::datasets {

struct PictureFile {
  std::filesystem::path path;
  /// An index into the classes.
  int label = 0;
};

/// A folder with a folder of pictures for each class.
struct ClassFolders {
  std::filesystem::path folder;
  /// The folders' names in order: as numbers if all are, else by their bytes.
  std::vector<std::string> classes;
  /// JPEG and PNG files, by their paths inside the class folders and then by class: files numbered through all classes
  /// come in the order of their numbers.
  std::vector<PictureFile> files;
};

/// The names of the folders in it, without hidden ones, in the order of classes. Throws Error for a name that is not
/// UTF-8.
std::vector<std::string> folders_in(const std::filesystem::path& folder);

/// Lists pictures by the endings .jpg, .jpeg and .png, in any case, at any depth of a class folder; hidden files and
/// others are left out. Throws Error for a folder that cannot be read, and names a class without pictures.
ClassFolders list_class_folders(const std::filesystem::path& folder);

/// The same with the classes of `known`, which may have more. Throws Error that names a class that is not among them;
/// `unknown_to` says who has these classes: "which the network does not know".
ClassFolders list_class_folders(const std::filesystem::path& folder, const std::vector<std::string>& known,
                                const std::string& unknown_to);

}  // namespace miniqat::datasets
