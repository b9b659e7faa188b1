#include "datasets/pictures/class_folders.h"

#include <algorithm>
#include <cctype>

#include "core/error.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"

namespace miniqat::datasets {
namespace {

namespace fs = std::filesystem;

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

bool is_picture_name(const fs::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(), [](unsigned char letter) { return std::tolower(letter); });
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

bool is_class_number(const std::string& text) {
  return !text.empty() && text.size() <= 9 &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c); });
}

std::vector<std::string> class_names(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.is_directory() && !is_hidden(entry.path())) names.push_back(entry.path().filename().string());
  // They go into files that must be UTF-8.
  for (const std::string& name : names)
    if (printable(name) != name) fail(folder / name, ": the name of a class must be UTF-8 without control characters");
  std::ranges::sort(names);
  if (std::ranges::all_of(names, is_class_number))
    std::ranges::stable_sort(names, {}, [](const std::string& name) { return std::stol(name); });
  return names;
}

std::vector<fs::path> pictures_in(const fs::path& folder) {
  std::vector<fs::path> files;
  constexpr auto kLinks = fs::directory_options::follow_directory_symlink;
  for (auto entry = fs::recursive_directory_iterator(folder, kLinks); entry != fs::end(entry); ++entry)
    if (is_hidden(entry->path()))
      entry.disable_recursion_pending();
    else if (entry->is_regular_file() && is_picture_name(entry->path()))
      files.push_back(entry->path());
  if (files.empty())
    fail("class ", quote(folder.filename().string()), ": ", folder,
         " holds no .jpg, .jpeg or .png file; put pictures in it or remove it");
  return files;
}

ClassFolders listed(const fs::path& folder, std::vector<std::string> classes, const std::vector<std::string>& found) {
  ClassFolders list{.folder = folder, .classes = std::move(classes), .files = {}};
  // The path inside of the class folder decides the order.
  std::vector<std::pair<std::string, PictureFile>> files;
  for (const std::string& name : found) {
    const auto label = static_cast<int>(std::ranges::find(list.classes, name) - list.classes.begin());
    for (const fs::path& path : pictures_in(folder / name))
      files.emplace_back(path.lexically_relative(folder / name).string(), PictureFile{path, label});
  }
  std::ranges::sort(files, {}, [](const auto& file) { return std::pair(file.first, file.second.label); });
  for (auto& [name, file] : files) list.files.push_back(std::move(file));
  return list;
}

/// Lists with errors that name the folder.
template <class Work>
auto reading(const fs::path& folder, const Work& work) {
  try {
    return work();
  } catch (const fs::filesystem_error& failure) {
    fail("cannot read ", folder, ": ", failure.code().message());
  }
}

}  // namespace

std::vector<std::string> folders_in(const fs::path& folder) {
  return reading(folder, [&] { return class_names(folder); });
}

ClassFolders list_class_folders(const fs::path& folder) {
  return reading(folder, [&] {
    const std::vector<std::string> names = class_names(folder);
    return listed(folder, names, names);
  });
}

ClassFolders list_class_folders(const fs::path& folder, const std::vector<std::string>& known,
                                const std::string& unknown_to) {
  return reading(folder, [&] {
    const std::vector<std::string> names = class_names(folder);
    for (const std::string& name : names)
      if (std::ranges::find(known, name) == known.end())
        fail(folder, " has the class ", quote(name), ", ", unknown_to, "; its classes are ", shortened(joined(known)));
    return listed(folder, known, names);
  });
}

}  // namespace miniqat::datasets
