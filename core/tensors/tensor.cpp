#include "core/tensors/tensor.h"

#include <cstring>

#include "core/memory/guarded_memory.h"
#include "core/text/error.h"

namespace miniqat {
namespace {

std::shared_ptr<void> allocate(std::size_t bytes) {
  if (is_guarding()) {
    void* memory = allocate_guarded(bytes);
    if (memory == nullptr) fail("out of memory: a guarded tensor of ", bytes, " bytes was refused");
    return {memory, release_guarded};
  }
  const std::size_t rounded = aligned_size(std::max<std::size_t>(bytes, 1));
  AlignedMemory memory = allocate_memory(rounded);
  if (memory == nullptr) fail("out of memory: a tensor of ", bytes, " bytes was refused");
  std::memset(memory.get(), 0, rounded);
  return memory;
}

bool is_floating(DType dtype) { return dtype == DType::kFloat32 || dtype == DType::kFloat64; }

}  // namespace

Tensor::Tensor(const TensorSpec& spec) : memory_(allocate(spec.bytes())), spec_(spec) {}

Tensor Tensor::view(void* memory, const TensorSpec& spec) {
  Tensor tensor;
  tensor.memory_ = std::shared_ptr<void>(std::shared_ptr<void>(), memory);
  tensor.spec_ = spec;
  return tensor;
}

template <class T>
Tensor Tensor::from(const Shape& shape, std::span<const T> values) {
  if (static_cast<std::int64_t>(values.size()) != shape.elements())
    fail("shape ", shape, " needs ", counted(shape.elements(), "value"), ", got ", values.size());
  Tensor tensor(shape, DTypeOf<T>::value);
  std::copy(values.begin(), values.end(), tensor.data<T>());
  return tensor;
}
template Tensor Tensor::from(const Shape&, std::span<const float>);
template Tensor Tensor::from(const Shape&, std::span<const double>);
template Tensor Tensor::from(const Shape&, std::span<const std::int64_t>);
template Tensor Tensor::from(const Shape&, std::span<const std::int32_t>);
template Tensor Tensor::from(const Shape&, std::span<const std::int8_t>);
template Tensor Tensor::from(const Shape&, std::span<const std::uint8_t>);

Tensor Tensor::clone() const {
  if (!defined()) return {};
  Tensor copy(spec_);
  std::memcpy(copy.raw(), raw(), bytes());
  return copy;
}

Tensor Tensor::reshaped(const Shape& shape) const {
  if (shape.elements() != elements())
    fail("cannot view ", spec_.shape, " as ", shape, ": the numbers of elements differ");
  Tensor other = *this;
  other.spec_.shape = shape;
  return other;
}

Tensor Tensor::slice(std::int64_t first, const Shape& shape) const {
  if (first < 0 || first > elements() - shape.elements())
    fail("a slice ", shape, " from element ", first, " on exceeds a tensor ", spec_.shape);
  Tensor other = *this;
  other.memory_ = {memory_, static_cast<std::byte*>(memory_.get()) + byte_size(spec_.dtype) * first};
  other.spec_.shape = shape;
  return other;
}

Tensor Tensor::to(DType dtype) const {
  if (!defined() || dtype == spec_.dtype) return *this;
  Tensor converted(spec_.shape, dtype);
  converted.assign(*this);
  return converted;
}

void Tensor::assign(const Tensor& other) {
  if (!defined() || !other.defined()) fail("cannot assign a tensor that holds nothing, or to one");
  if (other.shape() != shape()) fail("cannot assign ", other.shape(), " to ", shape());
  if (other.dtype() == dtype()) {
    if (other.raw() != raw()) std::memcpy(raw(), other.raw(), bytes());
    return;
  }
  if (!is_floating(dtype()) || !is_floating(other.dtype()))
    fail("cannot convert ", name_of(other.dtype()), " to ", name_of(dtype()));
  if (dtype() == DType::kFloat32)
    std::ranges::transform(other.values<double>(), data<float>(),
                           [](double value) { return static_cast<float>(value); });
  else
    std::ranges::copy(other.values<float>(), data<double>());
}

void Tensor::require(DType dtype) const {
  if (dtype != spec_.dtype) fail("a tensor of ", name_of(spec_.dtype), " was read as ", name_of(dtype));
}

}  // namespace miniqat
