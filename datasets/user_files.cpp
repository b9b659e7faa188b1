#include "datasets/user_files.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "core/files/files.h"
#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "datasets/arrays/array_numbers.h"
#include "datasets/arrays/array_pictures.h"
#include "datasets/arrays/column_roles.h"
#include "datasets/arrays/csv.h"
#include "datasets/arrays/number_table.h"
#include "datasets/arrays/number_tables.h"
#include "datasets/arrays/recordings.h"
#include "datasets/arrays/ts.h"
#include "datasets/data_dir.h"
#include "datasets/decoding.h"
#include "datasets/idx.h"
#include "datasets/parts.h"
#include "datasets/pictures/class_folders.h"
#include "datasets/pictures/formats.h"
#include "datasets/pictures/part_folders.h"
#include "datasets/pictures/picture.h"
#include "datasets/pictures/resize.h"
#include "datasets/sound/sound.h"
#include "datasets/sound/sound_files.h"
#include "datasets/sound/sound_folders.h"
#include "datasets/sound/sound_stack.h"

namespace miniqat::datasets {
namespace {

namespace fs = std::filesystem;

/// How folders and files of a part are called, in any case.
const std::vector<std::string>& names_of(Part part) {
  static const std::vector<std::string> kNames[] = {
      {"train", "training"}, {"val", "valid", "validation"}, {"test", "testing", "t10k"}};
  return kNames[static_cast<int>(part)];
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
          if (lower_case(entry.filename().string()) == word + ending) paths.try_emplace(part, entry);
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
    FoundParts parts = fs::is_directory(path_, failure) ? from_folder() : from_file();
    // Another process may have found pictures there, and asks.
    if (!parts.are_folders) shared_decoding().same(0);
    return splits_of(path_, std::move(parts), options_);
  }

 private:
  FoundParts from_file() const {
    const std::string name = path_.filename().string();
    if (name.ends_with(".npz"))
      return from_arrays(npz_names(path_), [&](const std::string& array) { return read_npz(path_, array); });
    if (name.ends_with(".npy"))
      return from_arrays({"x"}, [&](const std::string&) { return parse_npy(read_large_file(path_), path_.string()); });
    if (name.ends_with(".csv") || name.ends_with(".csv.gz")) return from_csv({{Part::kTrain, path_}});
    if (is_ts(path_)) return from_ts(path_);
    fail(path_, " is no data set: a folder, a .npz, .npy, .csv or .ts file is one");
  }

  FoundParts from_folder() const {
    require_no_dead_links(path_);
    const std::map<Part, fs::path> folders = existing(path_, true, {""});
    if (const auto recordings = recording_folders(folders); are_enough(recordings)) {
      tell_kind(DataKind::kRecordings);
      require_all(folders, recordings, "labels.csv with recordings");
      return with_note_on_folders(recordings, read_recordings(path_, recordings, options_));
    }
    if (const auto sounds = sound_folders(folders); are_enough(sounds)) {
      tell_kind(DataKind::kSounds);
      require_all(folders, sounds, "sounds");
      return with_note_on_folders(sounds, read_sounds(path_, sounds, options_));
    }
    if (folders.contains(Part::kTrain)) return from_parts(folders);
    if (FoundParts parts = from_idx(); !parts.found.empty()) {
      tell_kind(DataKind::kPictureArrays);
      return parts;
    }
    const std::vector<std::string> arrays = npy_names(path_);
    const bool may_lack_labels = inputs() != Inputs::kPictures || options_.answers_optional;
    const bool are_examples = may_lack_labels && are_enough(find_arrays_of_numbers(arrays));
    if (are_enough(find_arrays(arrays)) || (are_examples && inputs() == Inputs::kNumbers)) return from_npy(arrays);
    if (const auto files = existing(path_, false, {".csv", ".csv.gz"}); are_enough(files)) {
      FoundParts parts = from_csv(files);
      note_other_tables(files, parts);
      return parts;
    }
    if (!folders.empty()) return from_parts(folders);
    if (!folders_in(path_).empty()) return from_pictures({{Part::kTrain, path_}});
    if (are_examples) return from_npy(arrays);
    if (const fs::path series = training_series(); !series.empty()) return from_ts(series);
    fail(
        path_,
        " holds neither folders of pictures, one for each class, nor IDX files, x_train.npy and y_train.npy, train.csv, labels.csv with recordings, or NAME_TRAIN.ts");
  }

  FoundParts from_ts(const fs::path& file) const {
    if (inputs() == Inputs::kPictures) fail(file, " holds series of numbers, no pictures");
    tell_kind(DataKind::kSeries);
    return read_ts(ts_parts(file), options_);
  }

  /// The one file of a folder that is called NAME_TRAIN.ts. Nothing without any.
  fs::path training_series() const {
    std::set<fs::path> found;
    for (const fs::directory_entry& entry : fs::directory_iterator(path_))
      if (is_ts(entry.path()) && ts_parts(entry.path()).contains(Part::kTest)) found.insert(entry.path());
    if (found.size() > 1)
      fail(path_, " holds several data sets: ", found.begin()->filename(), ", ", std::next(found.begin())->filename(),
           "; give the path of one of these files");
    return found.empty() ? fs::path() : *found.begin();
  }

  /// The folders of the parts, or the whole one, that hold recordings.
  std::map<Part, fs::path> recording_folders(const std::map<Part, fs::path>& folders) const {
    std::map<Part, fs::path> found;
    if (inputs() == Inputs::kPictures) return found;
    for (const auto& [part, folder] : folders)
      if (has_recordings(folder)) found.emplace(part, folder);
    if (found.empty() && has_recordings(path_)) found.emplace(Part::kTrain, path_);
    return found;
  }

  /// The folders of the parts, or the whole one, that hold sounds.
  std::map<Part, fs::path> sound_folders(const std::map<Part, fs::path>& folders) const {
    std::map<Part, fs::path> found;
    if (inputs() == Inputs::kPictures) return found;
    for (const auto& [part, folder] : folders)
      if (has_sounds(folder)) found.emplace(part, folder);
    if (found.empty() && has_sounds(path_)) found.emplace(Part::kTrain, path_);
    return found;
  }

  /// What is called like a part is one: else training files would be taken for the test.
  void require_all(const std::map<Part, fs::path>& folders, const std::map<Part, fs::path>& found,
                   const char* files) const {
    for (const auto& [part, folder] : folders)
      if (!found.contains(part) && found.begin()->second != path_)
        fail(folder, " was taken for the ", title_of(part), " part, but holds no ", files);
  }

  /// Folders beside those of the parts; not that of noise, which is no part and may be read.
  FoundParts with_note_on_folders(const std::map<Part, fs::path>& found, FoundParts parts) const {
    if (found.begin()->second == path_) return parts;
    std::set<std::string> others;
    for (const fs::directory_entry& entry : fs::directory_iterator(path_)) {
      const std::string name = entry.path().filename().string();
      std::error_code failure;
      if (entry.is_directory(failure) && !name.starts_with('.') && name != kNoiseFolder && !holds_noise(entry.path()))
        others.insert(printable(name));
    }
    for (const auto& [part, folder] : found) others.erase(printable(folder.filename().string()));
    note_left_out(others, "folder", parts);
    return parts;
  }

  /// Whether the folder of SoundVariation::noise is this one or lies in it.
  bool holds_noise(const fs::path& folder) const {
    std::error_code failure;
    fs::path place = fs::canonical(options_.variation.noise, failure);
    while (place.has_relative_path() && !fs::equivalent(place, folder, failure)) place = place.parent_path();
    return place.has_relative_path();
  }

  void tell_kind(DataKind kind) const {
    if (options_.accept_kind) options_.accept_kind(kind);
  }

  /// Folders with the names of parts.
  FoundParts from_parts(const std::map<Part, fs::path>& folders) const {
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

  FoundParts from_pictures(const std::map<Part, fs::path>& folders) const {
    tell_kind(DataKind::kPictureFolders);
    if (inputs() == Inputs::kNumbers) fail(path_, " holds folders of pictures, no numbers");
    std::vector<fs::path> paths;
    for (const auto& [part, folder] : folders) paths.push_back(folder);
    PartsOfFolders read = read_part_folders(path_, paths, options_);
    FoundParts parts{.found = {},
                     .class_names = std::move(read.class_names),
                     .are_folders = true,
                     .remarks = std::move(read.remarks)};
    std::size_t i = 0;
    for (const auto& [part, folder] : folders) {
      PartPictures& pictures = read.parts[i++];
      parts.found[part] = {.images = pictures.images, .labels = pictures.labels, .files = pictures.files};
    }
    return parts;
  }

  FoundParts from_arrays(const std::vector<std::string>& names,
                         const std::function<NumpyArray(const std::string&)>& read) const {
    const ArrayNames arrays = named_arrays(names);
    FoundParts parts;
    const std::string no_pictures = inputs_of_arrays() == Inputs::kNumbers ? "" : put_pictures(arrays, read, parts);
    if (parts.found.empty()) put_numbers(arrays, read, no_pictures, parts);
    tell_kind(parts.found.begin()->second.images.dtype() == DType::kUInt8 ? DataKind::kPictureArrays
                                                                          : DataKind::kArrays);
    std::set<std::string> others(names.begin(), names.end());
    for (const auto& [part, pair] : pairs_of(arrays)) {
      const bool needs_labels = parts.found.at(part).images.dtype() == DType::kUInt8 && !options_.answers_optional;
      if (needs_labels && pair.labels.empty()) fail_unnamed(names);
      if (!pair.labels.empty())
        put_answers(read(pair.labels), source(pair.labels), options_.numbers.answers, parts.found.at(part),
                    parts.remarks.notes);
      for (const std::string& used : {pair.images, pair.labels}) others.erase(used);
    }
    constexpr const char* kNames = "class_names";
    if (others.erase(kNames) > 0) parts.class_names = names_in(read(kNames), source(kNames));
    note_left_out(others, "array", parts);
    return parts;
  }

  FoundParts from_npy(const std::vector<std::string>& names) const {
    return from_arrays(names, [&](const std::string& array) {
      const fs::path file = path_ / (array + ".npy");
      require_data_file(file);
      return parse_npy(read_large_file(file), file.string());
    });
  }

  ArrayNames named_arrays(const std::vector<std::string>& names) const {
    ArrayNames arrays = find_arrays(names);
    if (options_.answers_optional || (!are_enough(arrays) && inputs_of_arrays() != Inputs::kPictures))
      arrays = find_arrays_of_numbers(names);
    if (!are_enough(arrays)) fail_unnamed(names);
    return arrays;
  }

  [[noreturn]] void fail_unnamed(const std::vector<std::string>& names) const {
    fail(
        path_,
        " has no arrays of pictures and labels that are called x_train and y_train, train_images and train_labels, images and labels, or x and y; it has ",
        shortened(joined(names)));
  }

  std::string source(const std::string& array) const { return concat(path_, " (", array, ")"); }

  static std::map<Part, ArrayPair> pairs_of(const ArrayNames& arrays) {
    std::map<Part, ArrayPair> pairs;
    if (arrays.train) pairs[Part::kTrain] = *arrays.train;
    if (arrays.validation) pairs[Part::kValidation] = *arrays.validation;
    if (arrays.test) pairs[Part::kTest] = *arrays.test;
    return pairs;
  }

  /// What to read: a standard for numbers is there only with numbers.
  Inputs inputs() const {
    const NumberOptions& numbers = options_.numbers;
    const bool are_known = numbers.standard || numbers.trained_on == Inputs::kNumbers;
    return numbers.inputs == Inputs::kAuto && are_known ? Inputs::kNumbers : numbers.inputs;
  }

  Inputs inputs_of_arrays() const { return inputs() == Inputs::kAuto ? options_.numbers.trained_on : inputs(); }

  /// Puts the pictures of all parts. Where one has none: returns why, and puts nothing.
  std::string put_pictures(const ArrayNames& arrays, const std::function<NumpyArray(const std::string&)>& read,
                           FoundParts& parts) const {
    FoundParts found;
    for (const auto& [part, pair] : pairs_of(arrays)) {
      const NumpyArray array = read(pair.images);
      std::vector<std::string>& notes = found.remarks.notes;
      const std::size_t before = notes.size();
      try {
        found.found[part].images = pictures_of(array, source(pair.images), &notes);
      } catch (const Error& error) {
        if (inputs_of_arrays() == Inputs::kPictures) throw;
        return error.what();
      }
      if (notes.size() > before) found.levels_said.insert(part);
    }
    parts = std::move(found);
    return "";
  }

  void put_numbers(const ArrayNames& arrays, const std::function<NumpyArray(const std::string&)>& read,
                   const std::string& no_pictures, FoundParts& parts) const {
    for (const auto& [part, pair] : pairs_of(arrays))
      parts.found[part].images = numbers_of(read(pair.images), source(pair.images), parts.remarks.notes);
    // (Rows of features are no pictures anyway.)
    if (!no_pictures.empty() && parts.found.begin()->second.images.shape().rank() > 2) note_numbers(no_pictures, parts);
  }

  void note_numbers(const std::string& no_pictures, FoundParts& parts) const {
    const Shape& shape = parts.found.begin()->second.images.shape();
    parts.remarks.notes.push_back(
        concat("note: ", path_.string(), ": read as numbers ", shape, ", no pictures: ", no_pictures));
  }

  static std::vector<std::string> names_in(const NumpyArray& array, const std::string& source) {
    if (array.shape.size() != 1 || array.kind != 'U' || array.elements() == 0)
      fail(source, " must be texts, one for each class");
    std::vector<std::string> names;
    for (std::int64_t i = 0; i < array.elements(); ++i) {
      names.push_back(array.text(i, source));
      // They go into files that have a name a line.
      if (printable(names.back()) != names.back()) fail(source, ": ", quote(names.back()), " has control characters");
    }
    return names;
  }

  void note_left_out(const std::set<std::string>& names, const char* thing, FoundParts& parts) const {
    if (names.empty()) return;
    parts.remarks.notes.push_back(
        concat("note: ", path_.string(), ": left out ", counted(names.size(), thing), ": ", shortened(joined(names))));
  }

  /// A folder's tables of other names than those of parts.
  void note_other_tables(const std::map<Part, fs::path>& files, FoundParts& parts) const {
    std::set<std::string> others;
    for (const fs::directory_entry& entry : fs::directory_iterator(path_)) {
      const std::string name = entry.path().filename().string();
      if (!name.starts_with('.') && (name.ends_with(".csv") || name.ends_with(".csv.gz"))) others.insert(name);
    }
    for (const auto& [part, file] : files) others.erase(file.filename().string());
    note_left_out(others, "table", parts);
  }

  /// Tables of pictures or, where they are none and name their columns, of numbers.
  FoundParts from_csv(const std::map<Part, fs::path>& files) const {
    const NumberOptions& numbers = options_.numbers;
    const bool asked_for = !numbers.target.empty() || !numbers.group_by.empty();
    if (inputs() == Inputs::kNumbers || (inputs() == Inputs::kAuto && asked_for)) return from_number_tables(files);
    FoundParts pictures;
    try {
      pictures = from_picture_tables(files);
    } catch (const Error& error) {
      const auto is_name = [&](const std::string& word) { return is_column_name(numbers, word); };
      if (inputs() == Inputs::kPictures || !table_has_names(files.begin()->second, is_name)) throw;
      FoundParts parts = from_number_tables(files);
      note_numbers(error.what(), parts);
      return parts;
    }
    tell_kind(DataKind::kPictureArrays);
    return pictures;
  }

  FoundParts from_number_tables(const std::map<Part, fs::path>& files) const {
    tell_kind(DataKind::kTables);
    return read_number_tables(files, options_);
  }

  FoundParts from_picture_tables(const std::map<Part, fs::path>& files) const {
    FoundParts parts;
    for (const auto& [part, file] : files) {
      require_data_file(file);
      CsvPictures pictures =
          read_csv_pictures(file, {options_.pictures.height, options_.pictures.width}, options_.answers_optional);
      parts.found[part] = {.images = pictures.images, .labels = pictures.labels};
    }
    return parts;
  }

  /// Nothing where there are no IDX files.
  FoundParts from_idx() const {
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
    FoundParts parts;
    for (const auto& [part, pair] : files) {
      for (const IdxKind kind : {IdxKind::kImages, IdxKind::kLabels})
        if (!pair.contains(kind))
          fail(pair.begin()->second, ": the IDX file of its ", kind == IdxKind::kImages ? "pictures" : "labels",
               " is missing");
      IdxPair read = read_idx_pair(pair.at(IdxKind::kImages), pair.at(IdxKind::kLabels), 256);
      parts.found[part] = {.images = std::move(read.images), .labels = std::move(read.labels)};
    }
    if (!parts.found.empty() && !are_enough(parts.found)) fail(path_, ": no IDX file has \"train\" in its name");
    return parts;
  }

  /// Looks for a whole word of the name: "latest-images" are no test pictures.
  static Part part_of(const fs::path& file) {
    std::vector<std::string> words(1);
    for (const char c : lower_case(file.filename().string()))
      if (is_ascii_letter(c) || is_ascii_digit(c))
        words.back() += c;
      else
        words.emplace_back();
    for (const Part part : kParts)
      for (const std::string& word : names_of(part))
        if (std::ranges::find(words, word) != words.end()) return part;
    return Part::kTrain;
  }

  const fs::path& path_;
  const LoadOptions& options_;
};

}  // namespace

bool is_named_like_data(const fs::path& file) {
  constexpr std::array<std::string_view, 6> kEndings = {".npy", ".npz", ".csv", ".ts", ".gz", ".bin"};
  return has_picture_ending(file) || is_sound(file) ||
         std::ranges::find(kEndings, lower_ending(file)) != kEndings.end() ||
         file.filename().string().find("idx") != std::string::npos;
}

std::vector<fs::path> files_read_with(const fs::path& data) {
  std::vector<fs::path> files = {data};
  if (is_ts(data))
    for (const auto& [part, file] : ts_parts(data)) files.push_back(file);
  return files;
}

Tensor read_picture(const fs::path& path, const PictureOptions& options) {
  Picture picture = decode_picture(read_large_file(path), options.colour, path);
  if (options.has_size()) picture = fit_picture(picture, options.height, options.width);
  Tensor example(picture.shape(), DType::kUInt8);
  std::ranges::copy(picture.pixels, example.values<std::uint8_t>().begin());
  return example;
}

std::vector<std::string> sound_files(const fs::path& path) {
  std::error_code failure;
  if (!fs::is_directory(path, failure)) return {path.string()};
  std::vector<std::string> files;
  for (const std::string& file : sounds_in(path, path)) files.push_back((path / file).string());
  return files;
}

Dataset read_sound_files(const std::vector<std::string>& files, const SoundOptions& options) {
  SoundStack stack(options, {}, std::ssize(files));
  for (std::size_t i = 0; i < files.size(); ++i) {
    const Sound sound = resampled(read_sound(files[i]), options.rate);
    try {
      stack.put(static_cast<std::int64_t>(i), sound);
    } catch (const Error& error) {
      fail(fs::path(files[i]), ": ", error.what());
    }
  }
  PartData data{.images = {}, .files = std::make_shared<const std::vector<std::string>>(files)};
  stack.move_to(data);
  return {.name = "files", .images = data.images, .classes = 0, .recordings = data.recordings, .files = data.files};
}

Splits load_user_files(const fs::path& path, const LoadOptions& options) {
  try {
    return UserFiles(path, options).load();
  } catch (const fs::filesystem_error& failure) {
    fail("cannot read ", path, ": ", failure.code().message());
  }
}

}  // namespace miniqat::datasets
