#include "datasets/arrays/npy.h"

#include "core/text/suggest.h"
#include "datasets/arrays/array_pictures.h"
#include "tests/fuzz/readers/reader.h"

namespace miniqat::fuzz::npy_reader {

using namespace miniqat::datasets;

namespace {

/// A character of a text has four bytes.
std::string written(const NumpyArray& array) {
  const std::string header =
      concat("{'descr': '<", array.kind, array.kind == 'U' ? array.item / 4 : array.item,
             "', 'fortran_order': False, 'shape': (", joined(array.shape), array.shape.size() == 1 ? ",), }" : "), }");
  const auto length = static_cast<std::uint32_t>(header.size());
  std::string bytes("\x93NUMPY\x02\x00", 8);
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(length >> shift);
  return bytes + header + array.bytes;
}

}  // namespace

MINIQAT_READER(npy)(const std::uint8_t* data, std::size_t size) {
  NumpyArray array;
  if (!fuzz::accepts([&] { array = parse_npy(std::string(fuzz::text_of(data, size)), "in"); })) return 0;
  fuzz::require(std::ssize(array.bytes) == array.elements() * array.item, "an array has all its elements");
  const NumpyArray again = parse_npy(written(array), "again");
  fuzz::require(again.bytes == array.bytes && again.shape == array.shape && again.kind == array.kind,
                "an array written is read back");
  Tensor tensor;
  if (fuzz::accepts([&] { tensor = pictures_of(array, "in"); }))
    fuzz::require(tensor.elements() == array.elements(), "each number is a pixel");
  if (fuzz::accepts([&] { tensor = labels_of(array, "in"); }))
    for (std::int64_t i = 0; i < tensor.elements(); ++i)
      fuzz::require(tensor.data<std::int32_t>()[i] == array.integer(i, "in"), "labels are what the file holds");
  return 0;
}

}  // namespace miniqat::fuzz::npy_reader
