#pragma once

#include <Eigen/Core>
#include <span>

#include "core/tensor.h"

// Eigen, for formulas: what is one number a channel, or a matrix [rows, channels], is computed in expressions that read
// like their equations. A Map looks at memory that somebody else owns, and an `auto` expression of Maps computes
// nothing, and allocates nothing, until it is assigned.
//
// Two rules, which tests/house_test.cpp checks:
// - Only .cpp files include this header, so that no other header shows a type of Eigen's: its alignment is part of the
//   binary interface and depends on the compiler's flags.
// - None of them has loops per instruction set (core/kernels/per_instruction_set.h): Eigen's inline functions would be
//   compiled for the widest one, and the linker could pick those for a weaker CPU.
//
// Bits: sums and products by Eigen, its exp and log differ from a loop's, and its min and max leave open what becomes
// of a NaN. Elementwise + - * /, sqrt and select are exact.

// CMakeLists.txt defines both and says why.
#if !defined(EIGEN_DONT_PARALLELIZE) || !defined(EIGEN_FAST_MATH) || EIGEN_FAST_MATH
#error "Link miniqat_options, which sets how Eigen computes"
#endif

namespace miniqat {

template <class T>
using VectorMap = Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>;
template <class T>
using ConstVectorMap = Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>;

/// Numbers in a row, with elementwise operators. Of a Tensor of any shape, all its elements; its constness is shallow.
template <class T>
VectorMap<T> vector_of(std::span<T> values) {
  return {values.data(), std::ssize(values)};
}
template <class T>
ConstVectorMap<T> vector_of(std::span<const T> values) {
  return {values.data(), std::ssize(values)};
}
template <class T>
VectorMap<T> vector_of(const Tensor& tensor) {
  return vector_of(tensor.values<T>());
}

}  // namespace miniqat
