#include "integer/batch_shape.h"

#include <algorithm>
#include <array>
#include <span>

#include "core/error.h"
#include "core/text/quote.h"

namespace miniqat::integer {

Shape batch_shape(std::int64_t n, const Shape& example) {
  if (example.rank() >= Shape::kMaxRank) fail("no room for a batch in ", example);
  std::array<std::int64_t, Shape::kMaxRank> extents = {n};
  std::ranges::copy(example.extents(), extents.begin() + 1);
  return Shape(std::span(extents).first(static_cast<std::size_t>(example.rank()) + 1));
}

std::int64_t batch_size(const Tensor& batch, const TensorInfo& info) {
  const bool fits = batch.dtype() == DType::kUInt8 && batch.shape().rank() > 0 && batch.shape()[0] >= 1 &&
                    batch.shape() == batch_shape(batch.shape()[0], info.shape);
  if (!fits)
    fail("tensor ", quote(info.name), " takes a batch of ", info.shape, " uint8, not ", batch.shape(), " ",
         name_of(batch.dtype()));
  return batch.shape()[0];
}

}  // namespace miniqat::integer
