#include "datasets/idx.h"

#include <cstring>

#include "datasets/gzip.h"
#include "tests/fuzz/readers/reader.h"

namespace miniqat::fuzz::idx_reader {

using namespace miniqat::datasets;

namespace {

std::string big_endian(std::int64_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

std::string written_images(const Tensor& images) {
  std::string bytes = big_endian(2051);
  for (int axis = 0; axis < 3; ++axis) bytes += big_endian(images.shape()[axis]);
  return bytes.append(static_cast<const char*>(images.raw()), images.bytes());
}

std::string written_labels(const Tensor& labels) {
  std::string bytes = big_endian(2049) + big_endian(labels.elements());
  for (const std::int32_t label : labels.values<std::int32_t>()) bytes += static_cast<char>(label);
  return bytes;
}

}  // namespace

MINIQAT_READER(idx)(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Place place;
  const std::string_view bytes = fuzz::text_of(data, size);
  const auto file = place.write("in", bytes);
  const std::string plain = [&] {
    std::string content(bytes);
    if (is_gzip(bytes)) fuzz::accepts([&] { content = gunzip(bytes, std::size_t{1} << 24, file); });
    return content;
  }();
  Tensor images, labels;
  if (fuzz::accepts([&] { images = read_idx_images(file); }))
    fuzz::require(written_images(images) == plain, "images are what the file holds");
  if (fuzz::accepts([&] { labels = read_idx_labels(file, 10); }))
    fuzz::require(written_labels(labels) == plain, "labels are what the file holds");
  return 0;
}

}  // namespace miniqat::fuzz::idx_reader
