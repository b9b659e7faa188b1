#include "datasets/arrays/csv.h"

#include "tests/fuzz/readers/reader.h"

namespace miniqat::fuzz::csv_reader {

using namespace miniqat::datasets;

namespace {

std::string written(const CsvPictures& pictures) {
  std::string text;
  const std::int64_t pixels = pictures.images.elements() / pictures.labels.elements();
  for (std::int64_t i = 0; i < pictures.labels.elements(); ++i) {
    text += std::to_string(pictures.labels.data<std::int32_t>()[i]);
    for (std::int64_t k = 0; k < pixels; ++k)
      text += concat(",", int{pictures.images.data<std::uint8_t>()[i * pixels + k]});
    text += '\n';
  }
  return text;
}

bool same(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() &&
         std::equal(static_cast<const char*>(a.raw()), static_cast<const char*>(a.raw()) + a.bytes(),
                    static_cast<const char*>(b.raw()));
}

}  // namespace

MINIQAT_READER(csv)(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Place place;
  const auto file = place.write("in.csv", fuzz::text_of(data, size)), again = place / "again.csv";
  CsvPictures pictures;
  if (!fuzz::accepts([&] { pictures = read_csv_pictures(file, {2, 3}); })) return 0;
  place.write("again.csv", written(pictures));
  const CsvPictures back = read_csv_pictures(again, {2, 3});
  fuzz::require(same(back.images, pictures.images) && same(back.labels, pictures.labels),
                "pictures written are read back");
  return 0;
}

}  // namespace miniqat::fuzz::csv_reader
