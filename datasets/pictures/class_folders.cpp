#include "datasets/pictures/class_folders.h"

#include <algorithm>
#include <utility>

#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "datasets/class_names.h"
#include "datasets/data_dir.h"
#include "datasets/pictures/picture.h"

namespace miniqat::datasets {
namespace {

namespace fs = std::filesystem;

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

std::vector<std::string> class_names(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.is_directory() && !is_hidden(entry.path())) names.push_back(entry.path().filename().string());
  // They go into files that must be UTF-8.
  for (const std::string& name : names)
    if (printable(name) != name) fail(folder / name, ": the name of a class must be UTF-8 without control characters");
  sort_classes(names);
  return names;
}

class ClassFiles {
 public:
  explicit ClassFiles(const fs::path& folder) {
    constexpr auto kLinks = fs::directory_options::follow_directory_symlink;
    for (auto entry = fs::recursive_directory_iterator(folder, kLinks); entry != fs::end(entry); ++entry)
      if (is_hidden(entry->path()))
        entry.disable_recursion_pending();
      else if (std::error_code failure; !entry->is_directory(failure))
        add(*entry);
      else if (entry->is_symlink())
        require_no_circle(entry->path());
    if (pictures.empty())
      fail("class ", quote(folder.filename().string()), ": ", folder, " holds no picture (", joined(picture_endings()),
           ")", left_out.empty() ? "" : concat(", only ", text_of(left_out)), "; put pictures in it or remove it");
  }

  /// Without labels.
  std::vector<PictureFile> pictures;
  EndingCounts left_out;

 private:
  /// Its pictures would be there many times, in the training part and in the test part.
  static void require_no_circle(const fs::path& link) {
    const fs::path target = fs::canonical(link), outer = fs::canonical(link.parent_path());
    if (std::ranges::mismatch(target, outer).in1 == target.end())
      fail(link, " is a link to ", target, ", a folder around it: remove it");
  }

  void add(const fs::directory_entry& entry) {
    std::error_code failure;
    const bool leads_nowhere = entry.status(failure).type() == fs::file_type::not_found;
    if (!has_picture_ending(entry.path()) && !(leads_nowhere && !entry.path().has_extension()))
      ++left_out[lower_ending(entry.path())];
    else
      pictures.push_back({.path = entry.path(), .trouble = trouble_of(entry)});
  }

  static std::string trouble_of(const fs::directory_entry& entry) {
    std::error_code failure;
    switch (entry.status(failure).type()) {
      case fs::file_type::regular:
        return "";
      case fs::file_type::none:
        return concat("cannot be found: ", failure.message());
      case fs::file_type::not_found:
        return dead_link_text(entry.path());
      case fs::file_type::fifo:
        return "is a FIFO, no file";
      case fs::file_type::socket:
        return "is a socket, no file";
      default:
        return "is a device, no file";
    }
  }
};

ClassFolders listed(const fs::path& folder, std::vector<std::string> classes, const std::vector<std::string>& found) {
  ClassFolders list{.folder = folder, .classes = std::move(classes), .files = {}};
  // The path inside of the class folder decides the order.
  std::vector<std::pair<std::string, PictureFile>> files;
  for (const std::string& name : found) {
    ClassFiles in_class(folder / name);
    for (PictureFile& file : in_class.pictures) {
      file.label = static_cast<int>(std::ranges::find(list.classes, name) - list.classes.begin());
      files.emplace_back(file.path.lexically_relative(folder / name).string(), std::move(file));
    }
    for (const auto& [ending, count] : in_class.left_out) list.left_out[ending] += count;
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

std::string text_of(const EndingCounts& counts) {
  constexpr std::size_t kMost = 8;
  std::vector<std::pair<std::int64_t, std::string>> by_count;
  std::int64_t without = 0, others = 0;
  for (const auto& [ending, count] : counts)
    if (ending.empty())
      without = count;
    else
      by_count.emplace_back(-count, ending);
  std::ranges::sort(by_count);
  std::string text;
  for (std::size_t i = 0; i < by_count.size(); ++i) {
    if (i >= kMost)
      others -= by_count[i].first;
    else
      text += concat(text.empty() ? "" : ", ", -by_count[i].first, " ", printable(by_count[i].second));
  }
  const auto add = [&](std::int64_t count, const std::string& words) {
    if (count > 0) text += concat(text.empty() ? "" : " and ", words);
  };
  if (!by_count.empty()) text += by_count.size() == 1 && by_count[0].first == -1 ? " file" : " files";
  add(others, concat(others, " with other endings"));
  add(without, concat(counted(without, "file"), " without an ending"));
  return text;
}

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
