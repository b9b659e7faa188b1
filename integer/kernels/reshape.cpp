#include "integer/kernels/reshape.h"

#include <cstring>

namespace miniqat::integer {

void ReshapeStep::run(std::int64_t n, std::span<const std::uint8_t* const> inputs, std::uint8_t* output) const {
  std::memcpy(output, inputs[0], n * elements_);
}

}  // namespace miniqat::integer
