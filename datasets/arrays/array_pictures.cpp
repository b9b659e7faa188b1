#include "datasets/arrays/array_pictures.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.h"
#include "core/text/suggest.h"
#include "datasets/dataset.h"

namespace miniqat::datasets {
namespace {

std::string shape_text(const NumpyArray& array) { return concat("[", joined(array.shape), "]"); }

/// Element i of floats.
double real(const NumpyArray& array, std::int64_t i, const std::string& source) {
  const char* place = array.bytes.data() + i * array.item;
  float narrow = 0;
  double wide = 0;
  switch (array.item) {
    case 4:
      std::memcpy(&narrow, place, sizeof narrow);
      return narrow;
    case 8:
      std::memcpy(&wide, place, sizeof wide);
      return wide;
    default:
      fail(source, " holds floats of ", 8 * array.item, " bits; 32 and 64 can be read");
  }
}

void copy_reals(const NumpyArray& array, const std::string& source, std::uint8_t* pixels) {
  bool units = true, bytes = true;
  const std::int64_t count = array.elements();
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = real(array, i, source);
    units = units && value >= 0 && value <= 1;
    bytes = bytes && value >= 0 && value <= 255 && value == std::floor(value);
    if (!units && !bytes)
      fail(source, " holds ", value, " at element ", i,
           "; floats must all be in [0, 1], or all whole numbers in [0, 255]");
  }
  for (std::int64_t i = 0; i < count; ++i)
    pixels[i] = static_cast<std::uint8_t>(std::lround(real(array, i, source) * (units ? 255 : 1)));
}

void copy_integers(const NumpyArray& array, const std::string& source, std::uint8_t* pixels) {
  const std::int64_t count = array.elements();
  for (std::int64_t i = 0; i < count; ++i) {
    // A boolean is a byte of the file, which may hold any number; numpy takes each but 0 for true.
    const std::int64_t stored = array.integer(i), value = array.kind == 'b' ? (stored != 0 ? 255 : 0) : stored;
    if (value < 0 || value > 255)
      fail(source, " holds ", value, " at element ", i, "; numbers of pixels must be in [0, 255]");
    pixels[i] = static_cast<std::uint8_t>(value);
  }
}

}  // namespace

Tensor pictures_of(const NumpyArray& array, const std::string& source) {
  const std::size_t rank = array.shape.size();
  const std::int64_t channels = rank == 4 ? array.shape[3] : 1;
  if (rank < 3 || rank > 4 || (channels != 1 && channels != 3))
    fail(source, " has the shape ", shape_text(array), "; pictures must be [n, h, w], [n, h, w, 1] or [n, h, w, 3]",
         rank == 4 && (array.shape[1] == 1 || array.shape[1] == 3)
             ? "; channels come last here: save images.transpose(0, 2, 3, 1)"
             : "");
  if (array.elements() == 0) fail(source, " has the shape ", shape_text(array), ": there is no picture");
  Tensor images(Shape{array.shape[0], array.shape[1], array.shape[2], channels}, DType::kUInt8);
  auto* pixels = images.data<std::uint8_t>();
  if (array.kind == 'f')
    copy_reals(array, source, pixels);
  else
    copy_integers(array, source, pixels);
  return images;
}

Tensor labels_of(const NumpyArray& array, const std::string& source) {
  const std::size_t rank = array.shape.size();
  if (rank < 1 || rank > 2 || (rank == 2 && array.shape[1] != 1) || array.kind == 'f')
    fail(source, " has the shape ", shape_text(array), array.kind == 'f' ? " and floats" : "",
         "; labels must be integers, [n] or [n, 1]");
  Tensor labels(Shape{array.shape[0]}, DType::kInt32);
  for (std::int64_t i = 0; i < array.shape[0]; ++i) {
    const std::int64_t label = array.integer(i);
    if (label < 0 || label >= kMostClasses)
      fail(source, " gives example ", i, " the label ", label, "; labels must be in [0, ", kMostClasses, ")");
    labels.data<std::int32_t>()[i] = static_cast<std::int32_t>(label);
  }
  return labels;
}

}  // namespace miniqat::datasets
