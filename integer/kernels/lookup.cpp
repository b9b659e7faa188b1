#include "integer/kernels/lookup.h"

#include <algorithm>

#include "core/parallel.h"

namespace miniqat::integer {

void look_up(const ByteTable& table, const std::uint8_t* x, std::int64_t n, std::uint8_t* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = table[x[i]];
}

LookupStep::LookupStep(const Lookup& lookup, std::int64_t elements) : elements_(elements) {
  table_.fill(lookup.table.back());
  std::ranges::copy(lookup.table, table_.begin());
}

void LookupStep::run(std::int64_t n, std::span<const std::uint8_t* const> inputs, std::uint8_t* output) const {
  parallel_for(n * elements_, kPointwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    look_up(table_, inputs[0] + begin, end - begin, output + begin);
  });
}

}  // namespace miniqat::integer
