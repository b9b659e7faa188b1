#include "datasets/arrays/array_pictures.h"
#include "tests/fuzz/readers/reader.h"

namespace miniqat::fuzz::npz_reader {

using namespace miniqat::datasets;

MINIQAT_READER(npz)(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Place place;
  const auto file = place.write("in.npz", fuzz::text_of(data, size));
  std::vector<std::string> names;
  if (!fuzz::accepts([&] { names = npz_names(file); })) return 0;
  for (const std::string& name : names) {
    NumpyArray array;
    if (fuzz::accepts([&] { array = read_npz(file, name); }))
      fuzz::require(std::ssize(array.bytes) == array.elements() * array.item, "an array has all its elements");
  }
  fuzz::require(!fuzz::accepts([&] { read_npz(file, "no such array\x01"); }), "an array that is not there is refused");
  find_arrays(names);
  return 0;
}

}  // namespace miniqat::fuzz::npz_reader
