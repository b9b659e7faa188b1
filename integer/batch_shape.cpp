#include "integer/batch_shape.h"

#include "core/error.h"

namespace miniqat::integer {

Shape batch_shape(std::int64_t n, const Shape& example) {
  std::vector<std::int64_t> extents = {n};
  extents.insert(extents.end(), example.extents().begin(), example.extents().end());
  return Shape(extents);
}

std::int64_t batch_size(const Tensor& batch, const TensorInfo& info) {
  const bool fits = batch.dtype() == DType::kUInt8 && batch.shape().rank() > 0 && batch.shape()[0] >= 1 &&
                    batch.shape() == batch_shape(batch.shape()[0], info.shape);
  if (!fits)
    fail("tensor \"", info.name, "\" takes a batch of ", info.shape, " uint8, not ", batch.shape(), " ",
         name_of(batch.dtype()));
  return batch.shape()[0];
}

}  // namespace miniqat::integer
