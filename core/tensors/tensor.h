#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ranges>
#include <span>
#include <vector>

#include "core/memory/aligned_memory.h"
#include "core/tensors/dtype.h"
#include "core/tensors/shape.h"

namespace miniqat {

/// Type and shape of a tensor, known before it exists.
struct TensorSpec {
  Shape shape;
  DType dtype = DType::kFloat32;

  std::size_t bytes() const { return static_cast<std::size_t>(shape.elements()) * byte_size(dtype); }
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

/// A dense row-major array, 64-byte aligned. Copying a Tensor shares its elements; clone() copies them.
class Tensor {
 public:
  static constexpr std::size_t kAlignment = kMemoryAlignment;

  /// Holds nothing: defined() is false.
  Tensor() = default;
  /// Allocates zeros.
  explicit Tensor(const TensorSpec& spec);
  explicit Tensor(const Shape& shape, DType dtype = DType::kFloat32) : Tensor(TensorSpec{shape, dtype}) {}
  /// Looks at memory that somebody else owns and keeps alive.
  static Tensor view(void* memory, const TensorSpec& spec);
  /// Copies `values`; throws Error when their number is not the shape's.
  template <class T>
  static Tensor from(const Shape& shape, std::span<const T> values);
  template <class T>
  static Tensor from(const Shape& shape, const std::vector<T>& values) {
    return from(shape, std::span<const T>(values));
  }
  template <class T>
  static Tensor scalar(T value) {
    return from(Shape{}, std::span<const T>(&value, 1));
  }

  bool defined() const { return memory_ != nullptr; }
  const TensorSpec& spec() const { return spec_; }
  const Shape& shape() const { return spec_.shape; }
  DType dtype() const { return spec_.dtype; }
  std::int64_t elements() const { return spec_.shape.elements(); }
  std::size_t bytes() const { return spec_.bytes(); }

  void* raw() { return memory_.get(); }
  const void* raw() const { return memory_.get(); }
  /// The elements; throws Error when T is not the dtype. Through a const Tensor they are read only; who writes has the
  /// Tensor itself, or a copy.
  template <class T>
  T* data() {
    require(DTypeOf<T>::value);
    return static_cast<T*>(memory_.get());
  }
  template <class T>
  const T* data() const {
    require(DTypeOf<T>::value);
    return static_cast<const T*>(memory_.get());
  }
  template <class T>
  std::span<T> values() {
    return {data<T>(), static_cast<std::size_t>(elements())};
  }
  template <class T>
  std::span<const T> values() const {
    return {data<T>(), static_cast<std::size_t>(elements())};
  }

  /// A tensor that holds nothing gives another one.
  Tensor clone() const;
  /// The same elements under another shape; throws Error when the number of elements differs.
  Tensor reshaped(const Shape& shape) const;
  /// Element `first` and those behind it under another shape, shared; throws Error when there are too few.
  Tensor slice(std::int64_t first, const Shape& shape) const;
  /// A copy converted to float32 or float64 (or unchanged, shared, when it has that dtype already or holds nothing).
  Tensor to(DType dtype) const;
  /// Overwrites the elements with those of a tensor of the same spec; float32 and float64 convert into each other.
  /// Throws Error for any other, and if one of the two holds nothing.
  void assign(const Tensor& other);

 private:
  void require(DType dtype) const;

  std::shared_ptr<void> memory_;
  TensorSpec spec_;
};

/// The class that logits choose: the place of the first of the largest. -1, which is no class, where one is NaN.
template <std::ranges::random_access_range Values>
std::int64_t argmax(const Values& values) {
  const auto is_nan = [](auto value) { return value != value; };
  return std::ranges::any_of(values, is_nan) ? -1 : std::ranges::max_element(values) - values.begin();
}

}  // namespace miniqat
