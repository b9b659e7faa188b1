#include "datasets/cifar10.h"

#include "tests/fuzz/readers/reader.h"

namespace miniqat::fuzz::cifar10_reader {

using namespace miniqat::datasets;

namespace {

/// The records again: a label, then the planes.
std::string written(const Dataset& split) {
  constexpr std::int64_t kPlane = 32 * 32;
  std::string bytes;
  for (std::int64_t i = 0; i < split.size(); ++i) {
    bytes += static_cast<char>(split.labels.data<std::int32_t>()[i]);
    for (std::int64_t c = 0; c < 3; ++c)
      for (std::int64_t p = 0; p < kPlane; ++p)
        bytes += static_cast<char>(split.images.data<std::uint8_t>()[(i * kPlane + p) * 3 + c]);
  }
  return bytes;
}

}  // namespace

/// All six files hold the input; it is cut to a record, or filled up, unless its last byte is odd.
MINIQAT_READER(cifar10)(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kRecord = 3073;
  static const fuzz::Place place;
  static const bool linked = [] {
    for (const char* name : {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                             "data_batch_5.bin", "test_batch.bin"})
      std::filesystem::create_symlink("in", place / name);
    return true;
  }();
  (void)linked;
  std::string bytes(fuzz::text_of(data, size));
  if (!bytes.empty() && bytes.back() % 2 == 0) bytes.resize((bytes.size() + kRecord - 1) / kRecord * kRecord, '\7');
  place.write("in", bytes);
  Splits splits{{.name = {}}, {.name = {}}};
  if (!fuzz::accepts([&] { splits = load_cifar10(place.path()); })) return 0;
  splits.train.check();
  fuzz::require(written(splits.test) == bytes, "pictures and labels are what the file holds");
  fuzz::require(written(splits.train) == bytes + bytes + bytes + bytes + bytes, "the train split is all five files");
  return 0;
}

}  // namespace miniqat::fuzz::cifar10_reader
