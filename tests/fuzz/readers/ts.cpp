#include "datasets/arrays/ts.h"

#include <algorithm>
#include <cmath>

#include "tests/fuzz/readers/reader.h"

namespace miniqat::fuzz::ts_reader {

using namespace miniqat::datasets;

namespace {

constexpr std::int64_t kPadTo = 4;

PartData read(const std::filesystem::path& file) {
  return read_ts({{Part::kTrain, file}}, {.numbers = {.pad_to = kPadTo}}).found.at(Part::kTrain);
}

/// Without what it was filled up with.
std::string written(const PartData& part) {
  const Shape& shape = part.images.shape();
  std::string text = part.targets.defined() ? "@targetLabel true\n" : part.classes.empty() ? "" : "@classLabel true\n";
  text += "@data\n";
  for (std::int64_t i = 0; i < shape[0]; ++i) {
    for (std::int64_t d = 0; d < shape[2]; ++d) {
      text += d == 0 ? "" : ":";
      for (std::int64_t step = 0; step < kPadTo; ++step)
        if (const float value = part.images.data<float>()[(i * kPadTo + step) * shape[2] + d]; !std::isnan(value))
          text += concat(step == 0 ? "" : ",", exact(double{value}));
    }
    if (part.targets.defined())
      text += concat(":", exact(double{part.targets.data<float>()[i]}));
    else if (!part.classes.empty())
      text += concat(":", part.classes[static_cast<std::size_t>(i)]);
    text += '\n';
  }
  return text;
}

/// Places that are filled up are equal, too.
bool same(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::ranges::equal(a.values<float>(), b.values<float>(), [](float x, float y) {
           return x == y || (std::isnan(x) && std::isnan(y));
         });
}

}  // namespace

MINIQAT_READER(ts)(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Place place;
  const auto file = place.write("in.ts", fuzz::text_of(data, size));
  PartData part;
  if (!fuzz::accepts([&] { part = read(file); })) return 0;
  const PartData back = read(place.write("again.ts", written(part)));
  fuzz::require(same(back.images, part.images) && back.classes == part.classes, "series written are read back");
  fuzz::require(!part.targets.defined() || same(back.targets, part.targets), "numbers to predict are read back");
  return 0;
}

}  // namespace miniqat::fuzz::ts_reader
