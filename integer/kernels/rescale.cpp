#include "integer/kernels/rescale.h"

#include <cstring>

#include "core/parallel.h"

namespace miniqat::integer {

RescaleTable::RescaleTable(const Grid& from, const Multiplier& multiplier, const Grid& to, const Clamp& clamp) {
  for (int x = 0; x < 256; ++x) {
    table_[x] = requantize(x - from.zero_point, multiplier, to.zero_point, clamp);
    copies_ = copies_ && table_[x] == x;
  }
}

void RescaleTable::run(const std::uint8_t* x, std::int64_t n, std::uint8_t* y) const {
  if (copies_)
    std::memcpy(y, x, n);
  else
    look_up(table_, x, n, y);
}

RescaleStep::RescaleStep(const Model& model, const Operation& operation)
    : table_(model.input_of(operation).grid, std::get<Rescale>(operation.action).multiplier,
             model.output_of(operation).grid, operation.clamp),
      size_(model.output_of(operation).shape.elements()) {}

void RescaleStep::run(std::int64_t n, std::span<const std::uint8_t* const> inputs, std::uint8_t* output) const {
  parallel_for(n * size_, 4 * kPointwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    table_.run(inputs[0] + begin, end - begin, output + begin);
  });
}

}  // namespace miniqat::integer
