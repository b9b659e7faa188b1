#include "datasets/user_files.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "core/files/files.h"
#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "datasets/arrays/array_pictures.h"
#include "datasets/arrays/csv.h"
#include "datasets/class_counts.h"
#include "datasets/data_dir.h"
#include "datasets/decoding.h"
#include "datasets/hold_out.h"
#include "datasets/idx.h"
#include "datasets/pictures/class_folders.h"
#include "datasets/pictures/part_folders.h"
#include "datasets/pictures/resize.h"

namespace miniqat::datasets {
namespace {

namespace fs = std::filesystem;

enum class Part { kTrain, kValidation, kTest };
constexpr Part kParts[] = {Part::kTrain, Part::kValidation, Part::kTest};

/// How folders and files of a part are called, in any case.
const std::vector<std::string>& names_of(Part part) {
  static const std::vector<std::string> kNames[] = {
      {"train", "training"}, {"val", "valid", "validation"}, {"test", "testing", "t10k"}};
  return kNames[static_cast<int>(part)];
}

/// The parts that there are.
struct Parts {
  std::map<Part, PartPictures> found;
  std::vector<std::string> class_names = {};
  bool are_pictures = false;
  FileRemarks remarks = {};
  /// The parts on whose levels the remarks have a note.
  std::set<Part> levels_said = {};
};

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), ascii_lower);
  return text;
}

/// Folders (or files) in `folder` that are called like a part with one of the endings, the first spelling of each part.
std::map<Part, fs::path> existing(const fs::path& folder, bool directories, const std::vector<std::string>& endings) {
  std::vector<fs::path> entries;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.is_directory() == directories) entries.push_back(entry.path());
  // Lower case comes first.
  std::ranges::sort(entries, std::greater());
  std::map<Part, fs::path> paths;
  for (const Part part : kParts)
    for (const std::string& word : names_of(part))
      for (const std::string& ending : endings)
        for (const fs::path& entry : entries)
          if (lower(entry.filename().string()) == word + ending) paths.try_emplace(part, entry);
  return paths;
}

class UserFiles {
 public:
  UserFiles(const fs::path& path, const LoadOptions& options) : path_(path), options_(options) {}

  Splits load() const {
    std::error_code failure;
    if (!fs::exists(path_, failure)) {
      if (fs::is_symlink(path_, failure)) fail(path_, " ", dead_link_text(path_));
      fail("there is no ", path_);
    }
    Parts parts = fs::is_directory(path_, failure) ? from_folder() : from_file();
    // Another process may have found pictures there, and asks.
    if (SharedDecoding* const with = shared_decoding(); with != nullptr && !parts.are_pictures) with->same(0);
    return splits(parts);
  }

 private:
  Parts from_file() const {
    const std::string name = path_.filename().string();
    if (name.ends_with(".npz"))
      return from_arrays(npz_names(path_), [&](const std::string& array) { return read_npz(path_, array); });
    if (name.ends_with(".csv") || name.ends_with(".csv.gz")) return from_csv({{Part::kTrain, path_}});
    fail(path_, " is no data set: a folder, a .npz or a .csv file is one");
  }

  Parts from_folder() const {
    require_no_dead_links(path_);
    const std::map<Part, fs::path> folders = existing(path_, true, {""});
    if (folders.contains(Part::kTrain)) return from_parts(folders);
    if (Parts parts = from_idx(); !parts.found.empty()) return parts;
    if (const std::vector<std::string> names = npy_names(path_); are_enough(find_arrays(names)))
      return from_arrays(names, [&](const std::string& array) {
        const fs::path file = path_ / (array + ".npy");
        require_data_file(file);
        return parse_npy(read_large_file(file), file.string());
      });
    if (const auto files = existing(path_, false, {".csv", ".csv.gz"}); are_enough(files)) {
      Parts parts = from_csv(files);
      note_other_tables(files, parts);
      return parts;
    }
    if (!folders.empty()) return from_parts(folders);
    if (!folders_in(path_).empty()) return from_pictures({{Part::kTrain, path_}});
    fail(
        path_,
        " holds neither folders of pictures, one for each class, nor IDX files, x_train.npy and y_train.npy, or train.csv");
  }

  /// Folders with the names of parts.
  Parts from_parts(const std::map<Part, fs::path>& folders) const {
    std::vector<std::string> taken, others = folders_in(path_);
    for (const auto& [part, folder] : folders) {
      const std::string name = folder.filename().string();
      if (folders_in(folder).empty())
        fail(folder, " was taken for the ", title_of(part),
             " part, but holds no folders; there must be a folder of pictures for each class in it");
      taken.push_back(name + "/");
      std::erase(others, name);
    }
    if (!are_enough(folders)) fail(path_, " has ", joined(taken, " and "), " but no train/");
    if (!others.empty())
      fail(
          path_, " has ", shortened(joined(others)), " beside ", joined(taken, " and "),
          "; only these parts are read, with a folder inside for each class: move the others into them or remove them");
    return from_pictures(folders);
  }

  template <class Found>
  bool are_enough(const std::map<Part, Found>& found) const {
    return found.contains(Part::kTrain) || (options_.train_optional && !found.empty());
  }
  bool are_enough(const ArrayNames& found) const {
    return found.train || (options_.train_optional && (found.validation || found.test));
  }

  static const char* title_of(Part part) {
    return part == Part::kTrain ? "training" : part == Part::kTest ? "test" : "validation";
  }

  Parts from_pictures(const std::map<Part, fs::path>& folders) const {
    std::vector<fs::path> paths;
    for (const auto& [part, folder] : folders) paths.push_back(folder);
    PartsOfFolders read = read_part_folders(path_, paths, options_);
    Parts parts{.found = {},
                .class_names = std::move(read.class_names),
                .are_pictures = true,
                .remarks = std::move(read.remarks)};
    std::size_t i = 0;
    for (const auto& [part, folder] : folders) parts.found[part] = std::move(read.parts[i++]);
    return parts;
  }

  Parts from_arrays(const std::vector<std::string>& names,
                    const std::function<NumpyArray(const std::string&)>& read) const {
    const ArrayNames arrays = find_arrays(names);
    if (!are_enough(arrays))
      fail(
          path_,
          " has no arrays of pictures and labels that are called x_train and y_train, train_images and train_labels, images and labels, or x and y; it has ",
          shortened(joined(names)));
    Parts parts;
    const auto take = [&](Part part, const std::optional<ArrayPair>& pair) {
      if (!pair) return;
      const auto source = [&](const std::string& array) { return concat(path_, " (", array, ")"); };
      std::vector<std::string>& notes = parts.remarks.notes;
      const std::size_t before = notes.size();
      Tensor images = pictures_of(read(pair->images), source(pair->images), &notes);
      if (notes.size() > before) parts.levels_said.insert(part);
      parts.found[part] = {std::move(images), labels_of(read(pair->labels), source(pair->labels))};
    };
    take(Part::kTrain, arrays.train);
    take(Part::kValidation, arrays.validation);
    take(Part::kTest, arrays.test);
    std::set<std::string> others(names.begin(), names.end());
    constexpr const char* kNames = "class_names";
    if (others.erase(kNames) > 0) parts.class_names = names_in(read(kNames), concat(path_, " (", kNames, ")"));
    for (const std::optional<ArrayPair>& pair : {arrays.train, arrays.validation, arrays.test})
      if (pair)
        for (const std::string& used : {pair->images, pair->labels}) others.erase(used);
    note_left_out(others, "array", parts);
    return parts;
  }

  static std::vector<std::string> names_in(const NumpyArray& array, const std::string& source) {
    if (array.shape.size() != 1 || array.kind != 'U' || array.elements() == 0)
      fail(source, " must be texts, one for each class");
    std::vector<std::string> names;
    for (std::int64_t i = 0; i < array.elements(); ++i) names.push_back(array.text(i));
    return names;
  }

  void note_left_out(const std::set<std::string>& names, const char* thing, Parts& parts) const {
    if (names.empty()) return;
    parts.remarks.notes.push_back(
        concat("note: ", path_.string(), ": left out ", counted(names.size(), thing), ": ", shortened(joined(names))));
  }

  /// A folder's tables of other names than those of parts.
  void note_other_tables(const std::map<Part, fs::path>& files, Parts& parts) const {
    std::set<std::string> others;
    for (const fs::directory_entry& entry : fs::directory_iterator(path_)) {
      const std::string name = entry.path().filename().string();
      if (!name.starts_with('.') && (name.ends_with(".csv") || name.ends_with(".csv.gz"))) others.insert(name);
    }
    for (const auto& [part, file] : files) others.erase(file.filename().string());
    note_left_out(others, "table", parts);
  }

  Parts from_csv(const std::map<Part, fs::path>& files) const {
    Parts parts;
    for (const auto& [part, file] : files) {
      require_data_file(file);
      CsvPictures pictures = read_csv_pictures(file, {options_.pictures.height, options_.pictures.width});
      parts.found[part] = {pictures.images, pictures.labels};
    }
    return parts;
  }

  /// Nothing where there are no IDX files.
  Parts from_idx() const {
    std::map<Part, std::map<IdxKind, fs::path>> files;
    for (const fs::directory_entry& entry : fs::directory_iterator(path_)) {
      // A FIFO or a device of that name would be missed.
      const bool is_named_so = entry.path().filename().string().find("idx") != std::string::npos;
      if (is_named_so && !entry.is_directory()) require_data_file(entry.path());
      const IdxKind kind = entry.is_regular_file() ? idx_kind(entry.path()) : IdxKind::kNone;
      if (kind == IdxKind::kNone) continue;
      fs::path& place = files[part_of(entry.path())][kind];
      if (!place.empty())
        fail(place, " and ", entry.path(),
             " could both be taken; \"train\" or \"test\" in the names tells IDX files apart");
      place = entry.path();
    }
    Parts parts;
    for (const auto& [part, pair] : files) {
      for (const IdxKind kind : {IdxKind::kImages, IdxKind::kLabels})
        if (!pair.contains(kind))
          fail(pair.begin()->second, ": the IDX file of its ", kind == IdxKind::kImages ? "pictures" : "labels",
               " is missing");
      IdxPair read = read_idx_pair(pair.at(IdxKind::kImages), pair.at(IdxKind::kLabels), 256);
      parts.found[part] = {std::move(read.images), std::move(read.labels)};
    }
    if (!parts.found.empty() && !are_enough(parts.found)) fail(path_, ": no IDX file has \"train\" in its name");
    return parts;
  }

  /// By a whole word of the name: "latest-images" are no test pictures.
  static Part part_of(const fs::path& file) {
    std::vector<std::string> words(1);
    for (const char c : lower(file.filename().string()))
      if (is_ascii_letter(c) || is_ascii_digit(c))
        words.back() += c;
      else
        words.emplace_back();
    for (const Part part : kParts)
      for (const std::string& word : names_of(part))
        if (std::ranges::find(words, word) != words.end()) return part;
    return Part::kTrain;
  }

  Splits splits(Parts& parts) const {
    std::map<Part, Dataset> sets;
    const Part first = parts.found.begin()->first;
    int classes = std::max(static_cast<int>(parts.class_names.size()), options_.least_classes);
    for (const auto& [part, data] : parts.found) {
      Dataset& set = sets[part] = dataset(data);
      set.check();
      for (const std::int32_t label : set.labels.values<std::int32_t>()) classes = std::max(classes, label + 1);
    }
    if (!parts.are_pictures && !parts.class_names.empty() && classes > std::ssize(parts.class_names))
      fail(path_, " has names for ", counted(parts.class_names.size(), "class"), ", and a label ", classes - 1);
    if (classes < 2) fail("data set ", path_, " has one class only; there is nothing to tell apart");
    // Arrays have numbers only; the network may know what they mean.
    const std::vector<std::string>& names = parts.class_names.empty() ? options_.class_names : parts.class_names;
    for (auto& [part, set] : sets) {
      set.classes = classes;
      if (std::ssize(names) == classes) set.class_names = names;
      if (set.example_shape() != sets.at(first).example_shape())
        fail(path_, ": the ", title_of(first), " pictures are ", sets.at(first).example_shape(), ", others ",
             set.example_shape(), "; --image-size HxW brings all pictures to one size");
      if (std::string note = note_on_levels(set, title_of(part)); !note.empty() && !parts.levels_said.contains(part))
        parts.remarks.notes.push_back(std::move(note));
    }
    if (options_.accept) options_.accept(sets.at(first).example_shape());
    const auto remarks = std::make_shared<const FileRemarks>(std::move(parts.remarks));
    for (auto& [part, set] : sets) set.remarks = remarks;
    return without_skipped(parted(std::move(sets)), *remarks);
  }

  /// Only now, so that a file that breaks moves no other from part to part.
  Splits without_skipped(Splits splits, const FileRemarks& remarks) const {
    if (remarks.skipped.empty()) return splits;
    std::set<std::string> skipped;
    for (const SkippedFile& file : remarks.skipped) skipped.insert(file.file);
    const auto drop = [&](Dataset& set, const char* title) {
      if (!set.images.defined()) return;
      std::vector<std::int64_t> kept;
      for (std::int64_t i = 0; i < set.size(); ++i)
        if (!skipped.contains(set.file_of(i))) kept.push_back(i);
      if (kept.empty()) fail(path_, ": none of the ", title, " pictures can be read");
      if (std::ssize(kept) < set.size()) set = examples_at(set, kept);
    };
    drop(splits.train, "training");
    drop(splits.test, "test");
    if (splits.validation) drop(*splits.validation, "validation");
    return splits;
  }

  Splits parted(std::map<Part, Dataset> sets) const {
    if (sets.size() == 1 && (options_.whole_as_test || !sets.contains(Part::kTrain)))
      return {.train = {}, .test = sets.begin()->second};
    if (sets.size() == 1) return split_off_test(sets.at(Part::kTrain));
    Splits splits;
    if (sets.contains(Part::kTrain)) splits.train = sets.at(Part::kTrain);
    if (!sets.contains(Part::kTest)) {
      splits.test = sets.at(Part::kValidation);
      return splits;
    }
    splits.test = sets.at(Part::kTest);
    if (sets.contains(Part::kValidation)) splits.validation = sets.at(Part::kValidation);
    return splits;
  }

  Dataset dataset(const PartPictures& data) const {
    const PictureOptions& options = options_.pictures;
    return {.name = path_.string(),
            .images = fit_images(data.images, options),
            .labels = data.labels,
            .scale = scale_of(options),
            .zero_point = zero_point_of(options),
            .files = data.files};
  }

  const fs::path& path_;
  const LoadOptions& options_;
};

}  // namespace

bool is_path(const std::string& name) {
  const auto known = dataset_names();
  if (std::ranges::find(known, name) != known.end()) return false;
  std::error_code failure;
  return name.find('/') != std::string::npos || name.ends_with(".npz") || name.ends_with(".csv") ||
         name.ends_with(".csv.gz") || fs::is_directory(name, failure);
}

std::string short_name(const std::string& name) {
  if (!is_path(name)) return name;
  const fs::path path = fs::path(name).lexically_normal();
  const std::string file = (path.has_filename() ? path : path.parent_path()).filename().string();
  return file.substr(0, file.find('.', 1));
}

Tensor read_picture(const fs::path& path, const PictureOptions& options) {
  Picture picture = decode_picture(read_large_file(path), options.colour, path);
  if (options.has_size()) picture = fit_picture(picture, options.height, options.width);
  Tensor example(picture.shape(), DType::kUInt8);
  std::ranges::copy(picture.pixels, example.values<std::uint8_t>().begin());
  return example;
}

Splits load_user_files(const fs::path& path, const LoadOptions& options) {
  try {
    return UserFiles(path, options).load();
  } catch (const fs::filesystem_error& failure) {
    fail("cannot read ", path, ": ", failure.code().message());
  }
}

}  // namespace miniqat::datasets
