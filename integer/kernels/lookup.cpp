#include "integer/kernels/lookup.h"

#include <algorithm>

#include "core/parallel.h"

namespace miniqat::integer {

LookupStep::LookupStep(const Lookup& lookup, std::int64_t elements) : elements_(elements) {
  table_.fill(lookup.table.back());
  std::ranges::copy(lookup.table, table_.begin());
}

void LookupStep::run(std::int64_t n, std::span<const std::uint8_t* const> inputs, std::uint8_t* output) const {
  const std::uint8_t* x = inputs[0];
  parallel_for(n * elements_, kPointwiseGrain, [=, this](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) output[i] = table_[x[i]];
  });
}

}  // namespace miniqat::integer
