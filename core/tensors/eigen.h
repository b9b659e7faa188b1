#pragma once

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <span>

#include "core/tensors/tensor.h"

// Eigen, for formulas over vectors of one number a channel and over matrices [rows, channels]: the code reads like the
// equation. A Map looks at memory that somebody else owns. An `auto` expression of Maps computes and allocates nothing
// until it is assigned.
//
// Two rules, which tests/house_test.cpp checks:
// - Only .cpp files include this header. An Eigen type in another header would be part of the binary interface, and its
//   alignment depends on the compiler's flags.
// - None of them has loops per instruction set (core/kernels/per_instruction_set.h): Eigen's inline functions would be
//   compiled for the widest one, and the linker could pick these for a weaker CPU.
//
// Bits: elementwise + - * /, sqrt and select are those of a loop. Sums, products of matrices, exp and log are not, and
// min and max leave open what becomes of a NaN.
//
// Formulas that stay loops: the loss of training (layers/softmax.cpp), because its exp and its order of
// sums are part of the bits of every checkpoint; argmax (core/tensors/tensor.h), which chooses the first of equals and
// no class for a NaN; the histogram and the least-squares search of calibration, which count, sort and search and have
// no vectors.

// CMakeLists.txt defines both and says why.
#if !defined(EIGEN_DONT_PARALLELIZE) || !defined(EIGEN_FAST_MATH) || EIGEN_FAST_MATH
#error "Link miniqat_options, which sets how Eigen computes"
#endif

namespace miniqat {

template <class T>
using VectorMap = Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>;
template <class T>
using ConstVectorMap = Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>;

/// Numbers in a row, with elementwise operators. Of a Tensor of any shape, all its elements.
template <class T>
VectorMap<T> vector_of(std::span<T> values) {
  return {values.data(), std::ssize(values)};
}
template <class T>
ConstVectorMap<T> vector_of(std::span<const T> values) {
  return {values.data(), std::ssize(values)};
}
template <class T>
VectorMap<T> vector_of(Tensor& tensor) {
  return vector_of(tensor.values<T>());
}
template <class T>
ConstVectorMap<T> vector_of(const Tensor& tensor) {
  return vector_of(tensor.values<T>());
}

/// A matrix [rows, columns]; `*` is the matrix product.
template <class T>
using ConstMatrixMap = Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;

template <class T>
ConstMatrixMap<T> matrix_of(std::span<const T> values, std::int64_t columns) {
  return {values.data(), std::ssize(values) / columns, columns};
}
/// The last axis has the columns.
template <class T>
ConstMatrixMap<T> matrix_of(const Tensor& tensor) {
  return matrix_of(tensor.values<T>(), tensor.shape().channels());
}

}  // namespace miniqat
