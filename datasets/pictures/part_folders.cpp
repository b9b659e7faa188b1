#include "datasets/pictures/part_folders.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "core/tensors/random.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "datasets/class_names.h"
#include "datasets/data_dir.h"
#include "datasets/decoding.h"
#include "datasets/pictures/class_folders.h"
#include "datasets/pictures/picture_cache.h"
#include "datasets/pictures/read_pictures.h"

namespace miniqat::datasets {
namespace {

namespace fs = std::filesystem;

/// A hash of the names of all parts' files, so that processes can ask whether they read the same.
std::uint64_t hash_of_names(const std::vector<ClassFolders>& lists) {
  std::uint64_t hash = 0;
  for (std::size_t part = 0; part < lists.size(); ++part) {
    hash = mix(hash, part);
    for (const PictureFile& file : lists[part].files)
      hash = mix(hash, hash_text(file.path.lexically_relative(lists[part].folder).string() + file.trouble));
  }
  return hash;
}

std::vector<std::int64_t> indices_of(const BrokenFiles& broken) {
  std::vector<std::int64_t> indices;
  for (const auto& [index, why] : broken) indices.push_back(index);
  return indices;
}

/// "a; b; and 3 more", of ten at most.
std::string first_of(const std::vector<SkippedFile>& files) {
  constexpr std::size_t kMost = 10;
  std::string text;
  for (std::size_t i = 0; i < std::min(files.size(), kMost); ++i) text += concat(i == 0 ? "" : "; ", files[i].why);
  return files.size() > kMost ? concat(text, "; and ", files.size() - kMost, " more") : text;
}

/// What a part of the data set gave.
struct DecodedPart {
  /// Undefined where all files are broken.
  Tensor images;
  BrokenFiles broken;
};

class PartFolders {
 public:
  PartFolders(const fs::path& root, const std::vector<fs::path>& folders, const LoadOptions& options)
      : root_(root), folders_(folders), options_(options) {}

  PartsOfFolders read() {
    list();
    SharedDecoding& with = shared_decoding().same(hash_of_names(lists_)) ? shared_decoding() : lone_decoding();
    PartsOfFolders result;
    PictureOptions how = options_.pictures;
    for (const ClassFolders& list : lists_) {
      DecodedPart part = decode(list, how, with);
      take_broken(list, part.broken);
      if (!part.images.defined()) refuse_broken();
      if (options_.skip_broken) require_no_class_lost(list, part.broken);
      // What the files leave open is settled by the training pictures, which come first.
      how.colour = part.images.shape()[3] == 1 ? Colour::kGrey : Colour::kRgb;
      result.parts.push_back({std::move(part.images), labels_of(list), files_of(list)});
    }
    if (!broken_.empty() && !options_.skip_broken) refuse_broken();
    result.class_names = lists_.back().classes;
    result.remarks = {.notes = notes(), .skipped = broken_};
    return result;
  }

 private:
  /// The classes by number that the network knows, if there is a network.
  std::vector<std::string> known_classes() const {
    return options_.class_names.empty() ? numbers_below(options_.least_classes) : options_.class_names;
  }

  void list() {
    std::vector<std::string> known = known_classes();
    std::string unknown_to = "which the network does not know";
    for (const fs::path& folder : folders_) {
      require_no_dead_links(folder);
      lists_.push_back(known.empty() ? list_class_folders(folder) : list_class_folders(folder, known, unknown_to));
      lists_.back().root = root_;
      if (known.empty()) unknown_to = concat("which ", folder.filename().string(), "/ has not");
      known = lists_.back().classes;
    }
  }

  /// `all`: the processes that read this folder.
  DecodedPart decode(const ClassFolders& list, const PictureOptions& how, SharedDecoding& all) const {
    const PictureCache cache(list, how);
    std::optional<PictureCache::Kept> kept = cache.kept();
    std::uint64_t hash = kept ? 1 : 0;
    for (const std::int64_t place : kept ? kept->broken : std::vector<std::int64_t>())
      hash = mix(hash, static_cast<std::uint64_t>(place));
    SharedDecoding* with = all.same(hash) ? &all : &lone_decoding();
    // A file that could not be read then may be readable now.
    if (kept) {
      BrokenFiles broken = read_again(list, kept->broken, how, kept->images);
      return {std::move(kept->images), std::move(broken)};
    }
    BrokenFiles broken;
    std::optional<Shape> shape = shape_of_pictures(list, how, broken);
    if (shape && options_.accept) options_.accept(*shape);
    std::uint64_t found = shape ? hash_text(concat(*shape)) : 0;
    for (const std::int64_t place : indices_of(broken)) found = mix(found, static_cast<std::uint64_t>(place));
    if (!with->same(found)) with = &lone_decoding();
    Tensor images;
    while (shape) {
      const std::size_t before = broken.size();
      images = read_pictures(list, *shape, how, broken, *with);
      if (broken.size() == before) break;
      // A file with a good head may have been the only one in colour.
      const std::optional<Shape> without = shape_of_pictures(list, how, broken);
      if (without == shape) break;
      shape = without;
    }
    if (!shape || broken.size() == list.files.size()) return {{}, std::move(broken)};
    cache.keep({.images = images, .broken = indices_of(broken)});
    return {std::move(images), std::move(broken)};
  }

  void take_broken(const ClassFolders& list, const BrokenFiles& broken) {
    for (const auto& [place, why] : broken)
      broken_.push_back({list.name_of(list.files[static_cast<std::size_t>(place)]), why});
  }

  std::size_t all_files() const {
    std::size_t count = 0;
    for (const ClassFolders& list : lists_) count += list.files.size();
    return count;
  }

  [[noreturn]] void refuse_broken() const {
    fail(root_, ": ", broken_.size(), " of ", counted(all_files(), "file"), " cannot be read: ", first_of(broken_),
         options_.skip_broken ? "" : "; repair or remove them, or leave out what is broken with --skip-broken");
  }

  /// With nothing left of it a class would vanish.
  void require_no_class_lost(const ClassFolders& list, const BrokenFiles& broken) const {
    std::vector<std::int64_t> all(list.classes.size()), lost(list.classes.size());
    for (std::size_t i = 0; i < list.files.size(); ++i) {
      const auto label = static_cast<std::size_t>(list.files[i].label);
      ++all[label];
      if (broken.contains(static_cast<std::int64_t>(i))) ++lost[label];
    }
    for (std::size_t label = 0; label < all.size(); ++label)
      if (all[label] > 0 && lost[label] == all[label])
        fail("class ", quote(list.classes[label]), ": ", list.folder, " has ", counted(all[label], "picture"),
             " of it, and none can be read; first of all files: ", first_of(broken_));
  }

  std::shared_ptr<const std::vector<std::string>> files_of(const ClassFolders& list) const {
    std::vector<std::string> files;
    for (const PictureFile& file : list.files) files.push_back(list.name_of(file));
    return std::make_shared<std::vector<std::string>>(std::move(files));
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> notes;
    EndingCounts left_out;
    for (const ClassFolders& list : lists_)
      for (const auto& [ending, count] : list.left_out) left_out[ending] += count;
    if (!left_out.empty())
      notes.push_back(concat("note: ", root_.string(), ": left out ", text_of(left_out), "; pictures are ",
                             joined(picture_endings())));
    if (const EndingCounts strays = stray_pictures(); !strays.empty())
      notes.push_back(concat("note: ", root_.string(), ": left out ", text_of(strays), " that lie in no class folder"));
    if (!broken_.empty())
      notes.push_back(concat("note: ", root_.string(), ": skipped ", broken_.size(), " of ",
                             counted(all_files(), "file"), ", which cannot be read: ", first_of(broken_)));
    return notes;
  }

  /// Pictures beside the class folders or the parts.
  EndingCounts stray_pictures() const {
    EndingCounts strays;
    std::set<fs::path> folders(folders_.begin(), folders_.end());
    folders.insert(root_);
    for (const fs::path& folder : folders)
      for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
        const bool hidden = entry.path().filename().string().starts_with('.');
        if (std::error_code failure; !hidden && !entry.is_directory(failure) && has_picture_ending(entry.path()))
          ++strays[lower_ending(entry.path())];
      }
    return strays;
  }

  const fs::path& root_;
  const std::vector<fs::path>& folders_;
  const LoadOptions& options_;
  std::vector<ClassFolders> lists_;
  std::vector<SkippedFile> broken_;
};

}  // namespace

PartsOfFolders read_part_folders(const fs::path& root, const std::vector<fs::path>& folders,
                                 const LoadOptions& options) {
  return PartFolders(root, folders, options).read();
}

}  // namespace miniqat::datasets
