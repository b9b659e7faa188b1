#include "quantize/calibrate/histogram.h"

#include <algorithm>
#include <bit>

namespace miniqat::quantize {
namespace {

constexpr std::uint32_t kExponents = 256;

/// The least magnitude in a bin of an octave; `bin` may be one beyond the last. Zeros and denormals have exponent 0.
float magnitude(std::uint32_t exponent, std::uint32_t bin, int mantissa_bits) {
  return exponent == 0 ? 0 : std::bit_cast<float>((exponent << 23) + (bin << (23 - mantissa_bits)));
}

}  // namespace

bool Histogram::add(std::span<const float> values) {
  constexpr std::uint32_t kMask = (1u << kMantissaBits) - 1;
  bool finite = true;
  for (const float value : values) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t octave = bits >> 23;
    if (octave % kExponents == kExponents - 1) {
      finite = false;
      continue;
    }
    std::unique_ptr<Octave>& bins = octaves_[octave];
    if (!bins) bins = std::make_unique<Octave>();
    ++(*bins)[bits >> (23 - kMantissaBits) & kMask];
    if (count_++ == 0) extremes_ = {value, value};
    extremes_ = {std::min(extremes_.min, value), std::max(extremes_.max, value)};
  }
  return finite;
}

std::vector<Histogram::Bin> Histogram::bins() const {
  std::vector<Bin> bins;
  const auto collect = [&](bool negative, std::uint32_t exponent, std::uint32_t bin) {
    const std::int64_t count = (*octaves_[negative ? kExponents + exponent : exponent])[bin];
    if (count == 0) return;
    const float inner = magnitude(exponent, bin, kMantissaBits), outer = magnitude(exponent, bin + 1, kMantissaBits);
    const auto cut = [&](float x) { return std::clamp(x, extremes_.min, extremes_.max); };
    bins.push_back({cut(negative ? -outer : inner), cut(negative ? -inner : outer), count});
  };
  constexpr std::uint32_t kBins = 1u << kMantissaBits;
  for (std::uint32_t exponent = kExponents; exponent-- > 0;)
    for (std::uint32_t bin = octaves_[kExponents + exponent] ? kBins : 0; bin-- > 0;) collect(true, exponent, bin);
  for (std::uint32_t exponent = 0; exponent < kExponents; ++exponent)
    for (std::uint32_t bin = 0; octaves_[exponent] && bin < kBins; ++bin) collect(false, exponent, bin);
  return bins;
}

Range<float> Histogram::percentile(double percent) const {
  // Far less than one value, and far more than what rounding does to the product.
  constexpr double kSlack = 1e-3;
  const auto allowed = static_cast<std::int64_t>(static_cast<double>(count_) * (100 - percent) / 100 + kSlack);
  const std::vector<Bin> all = bins();
  Range<float> range = extremes_;
  std::int64_t outside = 0;
  for (auto bin = all.begin(); bin != all.end(); ++bin) {
    range.min = bin->low;
    if ((outside += bin->count) > allowed) break;
  }
  outside = 0;
  for (auto bin = all.rbegin(); bin != all.rend(); ++bin) {
    range.max = bin->high;
    if ((outside += bin->count) > allowed) break;
  }
  return range;
}

std::vector<WeightedValue> Histogram::values() const {
  std::vector<WeightedValue> values;
  for (const Bin& bin : bins()) values.push_back({bin.low + (bin.high - bin.low) / 2, static_cast<double>(bin.count)});
  return values;
}

}  // namespace miniqat::quantize
