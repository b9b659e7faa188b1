#include "integer/kernels/byte_table.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "integer/kernels/requantization.h"

namespace miniqat::integer {

ByteTable::ByteTable() : copies_(true) { std::iota(results_.begin(), results_.end(), std::uint8_t{0}); }

ByteTable::ByteTable(std::span<const std::uint8_t> results) {
  results_.fill(results.back());
  std::ranges::copy(results, results_.begin());
  copies_ = changes_nothing();
}

ByteTable::ByteTable(const Grid& from, const Multiplier& multiplier, const Grid& to, const Clamp& clamp) {
  const RequantizationFactors factors = requantization_factors(multiplier);
  for (int x = 0; x < 256; ++x) results_[x] = requantized(x - from.zero_point, factors, to.zero_point, clamp);
  copies_ = changes_nothing();
}

bool ByteTable::changes_nothing() const {
  for (int x = 0; x < 256; ++x)
    if (results_[x] != x) return false;
  return true;
}

void ByteTable::run(const std::uint8_t* x, std::int64_t n, std::uint8_t* y) const {
  if (copies_)
    std::memcpy(y, x, n);
  else
    for (std::int64_t i = 0; i < n; ++i) y[i] = results_[x[i]];
}

}  // namespace miniqat::integer
