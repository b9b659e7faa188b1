#include "datasets/arrays/array_pictures.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <span>

#include "core/platform/interruption.h"
#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/text/suggest.h"
#include "datasets/class_counts.h"
#include "datasets/dataset.h"

namespace miniqat::datasets {
namespace {

/// Around the name of a split; without one, of all there is.
struct Spelling {
  const char *images, *labels;
};
constexpr Spelling kSpellings[] = {
    {"x_@", "y_@"}, {"X_@", "y_@"}, {"@_images", "@_labels"}, {"@_x", "@_y"}, {"@_data", "@_labels"}};
constexpr Spelling kAlone[] = {{"images", "labels"}, {"x", "y"},         {"X", "y"},
                               {"data", "target"},   {"data", "labels"}, {"arr_0", "arr_1"}};

std::string spelled(std::string pattern, const std::string& split) {
  if (const std::size_t place = pattern.find('@'); place != std::string::npos) pattern.replace(place, 1, split);
  return pattern;
}

std::optional<ArrayPair> find_pair(const std::vector<std::string>& names, std::span<const Spelling> spellings,
                                   const std::vector<std::string>& splits) {
  const auto has = [&](const std::string& name) { return std::ranges::find(names, name) != names.end(); };
  for (const std::string& split : splits)
    for (const Spelling& spelling : spellings) {
      ArrayPair pair{spelled(spelling.images, split), spelled(spelling.labels, split)};
      if (has(pair.images) && has(pair.labels)) return pair;
    }
  return {};
}

/// As the file has it.
std::string exact_real(const NumpyArray& array, double value) {
  return array.item == 4 ? exact(static_cast<float>(value)) : exact(value);
}

struct RealRange {
  double least = 0, greatest = 0;
  /// All in [0, 1]; otherwise they are whole numbers in [0, 255].
  bool units = true;
};

RealRange range_of_reals(const NumpyArray& array, const std::string& source) {
  RealRange range{.least = INFINITY, .greatest = -INFINITY};
  bool bytes = true;
  const std::int64_t count = array.elements();
  for (std::int64_t i = 0; i < count; ++i) {
    pause_at(i);
    const double value = real_at(array, i, source);
    range.units = range.units && value >= 0 && value <= 1;
    bytes = bytes && value >= 0 && value <= 255 && value == std::floor(value);
    if (!range.units && !bytes)
      fail(source, " holds ", exact_real(array, value), " at element ", i,
           "; floats must all be in [0, 1], or all whole numbers in [0, 255]");
    range.least = std::min(range.least, value);
    range.greatest = std::max(range.greatest, value);
  }
  return range;
}

/// `moved`: the mean distance of a pixel to its byte, in [0, 0.5] bytes.
std::string note_on_rounding(const std::string& source, const RealRange& range, double moved, const Levels& levels) {
  char cost[200];
  classic_snprintf(
      cost, sizeof cost,
      "floats from %.3g to %.3g become bytes (1 becomes 255): rounding moves a pixel by %.2g on average, %.2g%% of that range",
      range.least, range.greatest, moved / 255, 100 * moved / (255 * (range.greatest - range.least)));
  return concat("note: ", source, ": ", cost, "; ", levels.count, " of 256 levels are in use");
}

void copy_reals(const NumpyArray& array, const std::string& source, std::span<std::uint8_t> pixels,
                std::vector<std::string>* notes) {
  // What floats of 32 bits lose when they are divided by 255 and multiplied again is far below.
  constexpr double kFree = 0.01;
  const RealRange range = range_of_reals(array, source);
  double moved = 0;
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    pause_at(static_cast<std::int64_t>(i));
    const double byte = real_at(array, static_cast<std::int64_t>(i), source) * (range.units ? 255 : 1);
    pixels[i] = static_cast<std::uint8_t>(std::lround(byte));
    moved += std::abs(byte - pixels[i]);
  }
  moved /= static_cast<double>(pixels.size());
  if (notes != nullptr && moved > kFree && range.greatest > range.least)
    notes->push_back(note_on_rounding(source, range, moved, Levels(pixels)));
}

void copy_integers(const NumpyArray& array, const std::string& source, std::uint8_t* pixels) {
  const std::int64_t count = array.elements();
  if (array.kind == 'u' && array.item == 1) {
    std::memcpy(pixels, array.bytes.data(), static_cast<std::size_t>(count));
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    pause_at(i);
    // A boolean is a byte of the file, which may hold any number; numpy takes each but 0 for true.
    const std::int64_t stored = array.integer(i, source), value = array.kind == 'b' ? (stored != 0 ? 255 : 0) : stored;
    if (value < 0 || value > 255)
      fail(source, " holds ", value, " at element ", i, "; numbers of pixels must be in [0, 255]");
    pixels[i] = static_cast<std::uint8_t>(value);
  }
}

}  // namespace

ArrayNames find_arrays(const std::vector<std::string>& names) {
  ArrayNames found{.train = find_pair(names, kSpellings, {"train"}),
                   .validation = find_pair(names, kSpellings, {"val", "valid", "validation"}),
                   .test = find_pair(names, kSpellings, {"test"})};
  if (!found.train) found.train = find_pair(names, kAlone, {""});
  return found;
}

ArrayNames find_arrays_of_numbers(const std::vector<std::string>& names) {
  const auto has = [&](const std::string& name) { return std::ranges::find(names, name) != names.end(); };
  const auto alone = [&](std::optional<ArrayPair>& pair, std::span<const Spelling> spellings,
                         const std::vector<std::string>& splits) {
    for (const std::string& split : splits)
      for (const Spelling& spelling : spellings)
        if (const std::string name = spelled(spelling.images, split); !pair && has(name)) pair = {name, ""};
  };
  ArrayNames found = find_arrays(names);
  alone(found.train, kSpellings, {"train"});
  alone(found.train, kAlone, {""});
  alone(found.validation, kSpellings, {"val", "valid", "validation"});
  alone(found.test, kSpellings, {"test"});
  return found;
}

std::vector<std::string> npy_names(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failure))
    if (entry.path().extension() == ".npy") names.push_back(entry.path().stem().string());
  if (failure) fail("cannot read ", folder, ": ", failure.message());
  std::ranges::sort(names);
  return names;
}

Tensor pictures_of(const NumpyArray& array, const std::string& source, std::vector<std::string>* notes) {
  const std::size_t rank = array.shape.size();
  const std::int64_t channels = rank == 4 ? array.shape[3] : 1;
  if (rank < 3 || rank > 4 || (channels != 1 && channels != 3))
    fail(source, " has the shape ", shape_text(array.shape),
         "; pictures must be [n, h, w], [n, h, w, 1] or [n, h, w, 3]",
         rank == 4 && (array.shape[1] == 1 || array.shape[1] == 3)
             ? "; channels come last here: save images.transpose(0, 2, 3, 1)"
             : "");
  if (array.elements() == 0) fail(source, " has the shape ", shape_text(array.shape), ": there is no picture");
  Tensor images(Shape{array.shape[0], array.shape[1], array.shape[2], channels}, DType::kUInt8);
  if (array.kind == 'f')
    copy_reals(array, source, images.values<std::uint8_t>(), notes);
  else
    copy_integers(array, source, images.data<std::uint8_t>());
  return images;
}

Tensor labels_of(const NumpyArray& array, const std::string& source, const char* otherwise) {
  const std::size_t rank = array.shape.size();
  if (rank < 1 || rank > 2 || (rank == 2 && array.shape[1] != 1) || array.kind == 'f')
    fail(source, " has the shape ", shape_text(array.shape), array.kind == 'f' ? " and floats" : "",
         "; labels must be integers, [n] or [n, 1]", otherwise);
  Tensor labels(Shape{array.shape[0]}, DType::kInt32);
  for (std::int64_t i = 0; i < array.shape[0]; ++i) {
    const std::int64_t label = array.integer(i, source);
    if (label < 0 || label >= kMostClasses)
      fail(source, " gives example ", i, " the label ", label, "; labels must be in [0, ", kMostClasses, ")",
           otherwise);
    labels.data<std::int32_t>()[i] = static_cast<std::int32_t>(label);
  }
  return labels;
}

}  // namespace miniqat::datasets
