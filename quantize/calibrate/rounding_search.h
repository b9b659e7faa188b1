#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace miniqat::quantize {

/// Rows of numbers, each of which is to become one of two: its neighbours on a grid. All row-major [rows, n].
struct RoundingRows {
  std::span<const float> values;
  /// low <= high; equal where there is no choice, as beyond the ends of a grid.
  std::span<const float> low;
  std::span<const float> high;
  /// p below; none for zeros.
  std::span<const float> pull = {};
};

/// Chooses the neighbours. With e = chosen - value, the error of a row is
///   e^T H e - 2 p^T e;
/// H is symmetric and positive definite, row-major [n, n]. In no row it is larger than with the nearest neighbours
/// (ties upwards). The result does not depend on the number of threads. Throws nothing but std::bad_alloc.
///
/// A quadratic function of n binary variables: nobody finds its least value for large n. The search begins with the
/// nearest neighbours, or with those of successive rounding where they are better. It then moves one number at a time
/// to its other neighbour: the one that gains most or loses least, but none of the last ten, or n / 4 if these are
/// fewer, unless that gives the best row so far (tabu search, Glover et al. 1998, "Adaptive memory tabu search for
/// binary quadratic programs"). It ends if 3 n moves in a row, or 2000, have brought nothing, and after 20 n moves in
/// any case. The best row on this way counts.
///
/// Successive rounding: with H = L L^T and p = H d, the error is ||L^T (e - d)||^2 up to a constant, a sum over i of
///   (L_ii (e_i - d_i) + sum over j > i of L_ji (e_j - d_j))^2.
/// From the last i to the first, each e_i makes its own term least (Babai's nearest plane; GPTQ, Frantar et al. 2022,
/// is the same for any integers). The largest H_ii come first.
///
/// `stops` is asked before each row, from several threads: once it says true, the search ends and its result
/// means nothing.
std::vector<float> round_rows(std::span<const float> moments, std::int64_t n, const RoundingRows& rows,
                              const std::function<bool()>& stops = {});

}  // namespace miniqat::quantize
