#pragma once

#include <algorithm>
#include <cmath>

/// The specification of the three ops that fold a batch norm. One channel at a time; see
/// quantize/fold/batch_norm_fold.h for the formulas.
namespace miniqat::quantize::reference {

/// Away from zero, which only an epsilon of 0 lets it reach: the moving variance of a dead channel must not break the
/// step. NaN stays NaN.
template <class T>
T sigma(T variance, double epsilon) {
  return std::sqrt(std::max(variance + static_cast<T>(epsilon), static_cast<T>(1e-12)));
}

template <class T>
struct FoldedChannel {
  T multiplier;
  T bias;
};

template <class T>
FoldedChannel<T> fold(T gamma, T beta, T mean, T variance, double epsilon) {
  const T multiplier = gamma / sigma(variance, epsilon);
  return {multiplier, beta - mean * multiplier};
}

template <class T>
struct FoldedChannelGradient {
  T d_gamma;
  T d_beta;
  T d_mean;
  T d_variance;
};

template <class T>
FoldedChannelGradient<T> fold_backward(T gamma, T mean, T variance, double epsilon, T d_multiplier, T d_bias) {
  const T s = sigma(variance, epsilon);
  // The bias, too, holds the multiplier.
  const T d_all = d_multiplier - d_bias * mean;
  return {d_all / s, d_bias, -d_bias * gamma / s, -d_all * gamma / (2 * s * s * s)};
}

template <class T>
struct CorrectedChannel {
  T scale;
  T recip;
  T offset;
};

template <class T>
CorrectedChannel<T> correct(T gamma, T mean, T variance, T moving_mean, T moving_variance, double epsilon,
                            bool frozen) {
  const T of_batch = sigma(variance, epsilon);
  const T moving = sigma(moving_variance, epsilon);
  const T scale = of_batch / moving;
  if (!frozen) return {scale, moving / of_batch, 0};
  return {scale, 1, gamma * (mean / of_batch - moving_mean / moving)};
}

template <class T>
struct CorrectedChannelGradient {
  T d_gamma;
  T d_mean;
  T d_variance;
};

template <class T>
CorrectedChannelGradient<T> correct_backward(T gamma, T mean, T variance, T moving_mean, T moving_variance,
                                             double epsilon, bool frozen, const CorrectedChannel<T>& d) {
  const T of_batch = sigma(variance, epsilon);
  const T moving = sigma(moving_variance, epsilon);
  // The gradient of sigma_b; d sigma / d variance = 1 / (2 sigma) comes last.
  T d_sigma = d.scale / moving;
  T d_gamma = 0;
  T d_mean = 0;
  if (frozen) {
    d_gamma = d.offset * (mean / of_batch - moving_mean / moving);
    d_mean = d.offset * gamma / of_batch;
    d_sigma -= d.offset * gamma * mean / (of_batch * of_batch);
  } else {
    d_sigma -= d.recip * moving / (of_batch * of_batch);
  }
  return {d_gamma, d_mean, d_sigma / (2 * of_batch)};
}

/// Away from zero: a gamma below `floor` counts as `floor`, with its sign.
template <class T>
T weight_scale(T gamma, T moving_variance, double epsilon, double floor) {
  const T magnitude = std::abs(gamma) < static_cast<T>(floor) ? static_cast<T>(floor) : std::abs(gamma);
  return std::copysign(magnitude, gamma) / sigma(moving_variance, epsilon);
}

}  // namespace miniqat::quantize::reference
