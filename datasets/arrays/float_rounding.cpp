#include "datasets/arrays/float_rounding.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/text/quote.h"

namespace miniqat::datasets {

float FloatRounding::kept(double value, float as_float) {
  least_ = std::min(least_, value);
  greatest_ = std::max(greatest_, value);
  moved_ = std::max(moved_, std::abs(value - as_float));
  return as_float;
}

void FloatRounding::join(const FloatRounding& other) {
  least_ = std::min(least_, other.least_);
  greatest_ = std::max(greatest_, other.greatest_);
  moved_ = std::max(moved_, other.moved_);
}

std::string FloatRounding::loss() const {
  constexpr double kFree = 1e-3;
  // What sums leave in the last digits of doubles is no content.
  constexpr double kNoise = 1e-12;
  const double range = greatest_ - least_;
  if (!(range > kNoise * std::max(std::abs(least_), std::abs(greatest_))) || moved_ <= kFree * range) return "";
  char moved[32], share[64] = "all of their range";
  classic_snprintf(moved, sizeof moved, "%.3g", moved_);
  if (moved_ < range) classic_snprintf(share, sizeof share, "%.2g%% of their range", 100 * moved_ / range);
  // Smaller ones are beyond the exponents of floats.
  const bool are_tiny = std::max(std::abs(least_), std::abs(greatest_)) < std::numeric_limits<float>::min() / kFree;
  return concat("numbers from ", exact(least_), " to ", exact(greatest_), " are rounded by up to ", moved,
                " to floats of 32 bits, ", share, are_tiny ? ": multiply them by a factor" : ": subtract an offset");
}

void note_float_rounding(const std::string& source, const std::string& kind, const std::vector<FloatRounding>& columns,
                         const std::vector<std::string>& names, std::vector<std::string>& notes) {
  std::string first;
  std::int64_t others = -1;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string loss = columns[i].loss();
    if (loss.empty()) continue;
    const std::string name = !names.empty() ? shortened(printable(names[i])) : std::to_string(i);
    if (++others == 0) first = concat(names.empty() && columns.size() == 1 ? "" : concat(kind, " ", name, ": "), loss);
  }
  if (others < 0) return;
  notes.push_back(concat("note: ", source, ": ", first,
                         others == 0 ? ""
                                     : concat("; ", counted(others, concat("other ", kind)),
                                              others == 1 ? " loses" : " lose", " much, too")));
}

}  // namespace miniqat::datasets
