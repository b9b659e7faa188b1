#include "datasets/user_files.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include "core/error.h"
#include "core/files.h"
#include "core/quote.h"
#include "datasets/arrays/array_files.h"
#include "datasets/arrays/array_pictures.h"
#include "datasets/arrays/csv.h"
#include "datasets/hold_out.h"
#include "datasets/idx.h"
#include "datasets/pictures/class_folders.h"
#include "datasets/pictures/fit_images.h"
#include "datasets/pictures/picture_cache.h"
#include "datasets/pictures/read_pictures.h"
#include "datasets/pictures/resize.h"

namespace miniqat::datasets {
namespace {

namespace fs = std::filesystem;

enum class Part { kTrain, kValidation, kTest };
constexpr Part kParts[] = {Part::kTrain, Part::kValidation, Part::kTest};

/// How folders and files of a part are called.
const std::vector<std::string>& names_of(Part part) {
  static const std::vector<std::string> kNames[] = {
      {"train", "training"}, {"val", "valid", "validation"}, {"test", "testing", "t10k"}};
  return kNames[static_cast<int>(part)];
}

/// Pictures and labels of the parts that there are.
struct Parts {
  std::map<Part, std::pair<Tensor, Tensor>> found;
  std::vector<std::string> class_names = {};
};

template <class Name>
std::map<Part, fs::path> existing(const fs::path& folder, const Name& name) {
  std::map<Part, fs::path> paths;
  for (const Part part : kParts)
    for (const std::string& word : names_of(part))
      for (const std::string& file : name(word))
        if (std::error_code failure; !paths.contains(part) && fs::exists(folder / file, failure))
          paths[part] = folder / file;
  return paths;
}

class UserFiles {
 public:
  UserFiles(const fs::path& path, const LoadOptions& options) : path_(path), options_(options) {}

  Splits load() const {
    std::error_code failure;
    if (!fs::exists(path_, failure)) fail("there is no ", path_);
    return splits(fs::is_directory(path_, failure) ? from_folder() : from_file());
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
    if (const auto folders = existing(path_, [](const std::string& word) { return std::vector{word}; });
        folders.contains(Part::kTrain) && fs::is_directory(folders.at(Part::kTrain)))
      return from_pictures(folders);
    if (Parts parts = from_idx(); !parts.found.empty()) return parts;
    if (const std::vector<std::string> names = npy_names(path_); find_arrays(names).train)
      return from_arrays(names, [&](const std::string& array) {
        const fs::path file = path_ / (array + ".npy");
        return parse_npy(read_large_file(file), file.string());
      });
    if (const auto files = existing(path_,
                                    [](const std::string& word) {
                                      return std::vector{word + ".csv", word + ".csv.gz"};
                                    });
        files.contains(Part::kTrain))
      return from_csv(files);
    if (has_folders(path_)) return from_pictures({{Part::kTrain, path_}});
    fail(path_,
         " holds neither folders of pictures, one for each class, nor IDX files, x_train.npy and y_train.npy, or "
         "train.csv");
  }

  Parts from_pictures(const std::map<Part, fs::path>& folders) const {
    std::map<Part, ClassFolders> lists;
    for (const auto& [part, folder] : folders) {
      if (!has_folders(folder)) fail(folder, " holds no folders; there must be a folder of pictures for each class");
      const std::vector<std::string>& known = lists.empty() ? options_.class_names : lists.at(Part::kTrain).classes;
      lists.emplace(part, known.empty() ? list_class_folders(folder) : list_class_folders(folder, known));
    }
    Parts parts{.found = {}, .class_names = lists.at(Part::kTrain).classes};
    PictureOptions options = options_.pictures;
    for (const auto& [part, list] : lists) {
      const Tensor images = decoded(list, options);
      parts.found[part] = {images, labels_of(list)};
      // What the files leave open is settled by the training pictures, which come first.
      options.colour = images.shape()[3] == 1 ? Colour::kGrey : Colour::kRgb;
    }
    return parts;
  }

  Tensor decoded(const ClassFolders& list, const PictureOptions& options) const {
    const PictureCache cache(list, options);
    if (std::optional<Tensor> kept = cache.images()) return *kept;
    const Shape shape = shape_of_pictures(list, options);
    if (options_.accept) options_.accept(shape);
    Tensor images = read_pictures(list, shape, options);
    cache.keep(images);
    return images;
  }

  Parts from_arrays(const std::vector<std::string>& names,
                    const std::function<NumpyArray(const std::string&)>& read) const {
    const ArrayNames arrays = find_arrays(names);
    if (!arrays.train)
      fail(path_,
           " has no arrays of pictures and labels that are called x_train and y_train, train_images and train_labels, "
           "images and labels, or x and y; it has ",
           shortened(joined(names)));
    Parts parts;
    const auto take = [&](Part part, const std::optional<ArrayPair>& pair) {
      if (!pair) return;
      const auto source = [&](const std::string& array) { return concat(path_, " (", array, ")"); };
      parts.found[part] = {pictures_of(read(pair->images), source(pair->images)),
                           labels_of(read(pair->labels), source(pair->labels))};
    };
    take(Part::kTrain, arrays.train);
    take(Part::kValidation, arrays.validation);
    take(Part::kTest, arrays.test);
    return parts;
  }

  Parts from_csv(const std::map<Part, fs::path>& files) const {
    Parts parts;
    for (const auto& [part, file] : files) {
      CsvPictures pictures = read_csv_pictures(file, {options_.pictures.height, options_.pictures.width});
      parts.found[part] = {pictures.images, pictures.labels};
    }
    return parts;
  }

  /// Nothing where there are no IDX files.
  Parts from_idx() const {
    std::map<Part, std::map<IdxKind, fs::path>> files;
    for (const fs::directory_entry& entry : fs::directory_iterator(path_)) {
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
      parts.found[part] = {read_idx_images(pair.at(IdxKind::kImages)), read_idx_labels(pair.at(IdxKind::kLabels), 256)};
    }
    if (!parts.found.empty() && !parts.found.contains(Part::kTrain))
      fail(path_, ": no IDX file has \"train\" in its name");
    return parts;
  }

  static Part part_of(const fs::path& file) {
    const std::string name = file.filename().string();
    for (const Part part : kParts)
      for (const std::string& word : names_of(part))
        if (name.find(word) != std::string::npos) return part;
    return Part::kTrain;
  }

  Splits splits(const Parts& parts) const {
    std::map<Part, Dataset> sets;
    int classes = std::max(static_cast<int>(parts.class_names.size()), options_.least_classes);
    for (const auto& [part, tensors] : parts.found) {
      Dataset& set = sets[part] = dataset(tensors.first, tensors.second);
      set.check();
      for (const std::int32_t label : set.labels.values<std::int32_t>()) classes = std::max(classes, label + 1);
    }
    if (classes < 2) fail("data set ", path_, " has one class only; there is nothing to tell apart");
    // Arrays have numbers only; the network may know what they mean.
    const std::vector<std::string>& names = parts.class_names.empty() ? options_.class_names : parts.class_names;
    for (auto& [part, set] : sets) {
      set.classes = classes;
      if (std::ssize(names) == classes) set.class_names = names;
      if (set.example_shape() != sets.at(Part::kTrain).example_shape())
        fail(path_, ": the training pictures are ", sets.at(Part::kTrain).example_shape(), ", others ",
             set.example_shape(), "; --image-size HxW brings all pictures to one size");
    }
    if (options_.accept) options_.accept(sets.at(Part::kTrain).example_shape());
    return parted(std::move(sets));
  }

  static Splits parted(std::map<Part, Dataset> sets) {
    if (sets.size() == 1) return split_off_test(sets.at(Part::kTrain));
    Splits splits{.train = sets.at(Part::kTrain), .test = {}};
    if (!sets.contains(Part::kTest)) {
      splits.test = sets.at(Part::kValidation);
      return splits;
    }
    splits.test = sets.at(Part::kTest);
    if (sets.contains(Part::kValidation)) splits.validation = sets.at(Part::kValidation);
    return splits;
  }

  Dataset dataset(const Tensor& images, const Tensor& labels) const {
    const PictureOptions& options = options_.pictures;
    return {.name = path_.string(),
            .images = fit_images(images, options),
            .labels = labels,
            .scale = scale_of(options),
            .zero_point = zero_point_of(options)};
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
