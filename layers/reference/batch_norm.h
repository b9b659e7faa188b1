#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

/// The specification of BatchNorm. x is [rows, channels]: all axes but the last are one. Everything per channel is
/// [channels].
namespace miniqat::layers::reference {

template <class T>
T inverse_sigma(T variance, double epsilon) {
  return 1 / std::sqrt(variance + static_cast<T>(epsilon));
}

/// The biased variance: divided by rows.
template <class T>
void batch_statistics(std::int64_t rows, std::int64_t channels, const T* x, T* mean, T* variance) {
  for (std::int64_t c = 0; c < channels; ++c) {
    T sum{0};
    for (std::int64_t r = 0; r < rows; ++r) sum += x[r * channels + c];
    mean[c] = sum / static_cast<T>(rows);
    T squares{0};
    for (std::int64_t r = 0; r < rows; ++r)
      squares += (x[r * channels + c] - mean[c]) * (x[r * channels + c] - mean[c]);
    variance[c] = squares / static_cast<T>(rows);
  }
}

/// moving = decay * moving + (1 - decay) * value, where the variance is made unbiased first: times n / (n - 1). A batch
/// of one row has variance 0, biased or not.
template <class T>
void update_moving(std::int64_t rows, std::int64_t channels, double decay, const T* mean, const T* variance,
                   T* moving_mean, T* moving_variance) {
  const T keep = static_cast<T>(decay);
  const T take = static_cast<T>(1 - decay);
  const T unbias = static_cast<T>(rows) / static_cast<T>(std::max<std::int64_t>(rows - 1, 1));
  for (std::int64_t c = 0; c < channels; ++c) {
    moving_mean[c] = keep * moving_mean[c] + take * mean[c];
    moving_variance[c] = keep * moving_variance[c] + take * variance[c] * unbias;
  }
}

template <class T>
void batch_norm(std::int64_t rows, std::int64_t channels, double epsilon, const T* x, const T* gamma, const T* beta,
                const T* mean, const T* variance, T* y) {
  for (std::int64_t c = 0; c < channels; ++c) {
    const T inverse = inverse_sigma(variance[c], epsilon);
    for (std::int64_t r = 0; r < rows; ++r)
      y[r * channels + c] = gamma[c] * ((x[r * channels + c] - mean[c]) * inverse) + beta[c];
  }
}

/// d_gamma = sum of d_y * x_hat and d_beta = sum of d_y, with x_hat = (x - mean) / sigma.
template <class T>
void batch_norm_backward_parameters(std::int64_t rows, std::int64_t channels, double epsilon, const T* x, const T* d_y,
                                    const T* mean, const T* variance, T* d_gamma, T* d_beta) {
  for (std::int64_t c = 0; c < channels; ++c) {
    const T inverse = inverse_sigma(variance[c], epsilon);
    d_gamma[c] = d_beta[c] = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
      d_gamma[c] += d_y[r * channels + c] * (x[r * channels + c] - mean[c]) * inverse;
      d_beta[c] += d_y[r * channels + c];
    }
  }
}

/// d_x = slope * d_y + through_mean + through_variance * (x - mean), for one channel.
///
/// With moving statistics mean and variance are constants: d_x = gamma / sigma * d_y.
/// In a batch, mean = sum x / n and variance = sum (x - mean)^2 / n depend on x as well: dmean/dx = 1 / n and
/// dvariance/dx = 2 (x - mean) / n (the mean's own dependence cancels, since the deviations sum to 0). Through y,
///   dL/dmean = -gamma / sigma * d_beta   and   dL/dvariance = -gamma / (2 sigma^2) * d_gamma,
/// to which come the gradients d_mean and d_variance that reach these outputs directly. Hence
///   d_x = gamma / sigma * d_y + dL/dmean / n + dL/dvariance * 2 (x - mean) / n.
template <class T>
struct InputGradient {
  T slope;
  T through_mean = 0;
  T through_variance = 0;

  static InputGradient from_moving(T gamma, T inverse_sigma) { return {.slope = gamma * inverse_sigma}; }
  static InputGradient from_batch(std::int64_t rows, T gamma, T inverse_sigma, T d_gamma, T d_beta, T d_mean,
                                  T d_variance) {
    const T n = static_cast<T>(rows);
    const T slope = gamma * inverse_sigma;
    return {.slope = slope,
            .through_mean = (d_mean - slope * d_beta) / n,
            .through_variance = (2 * d_variance - slope * inverse_sigma * d_gamma) / n};
  }
};

template <class T>
void batch_norm_backward_input(std::int64_t rows, std::int64_t channels, const T* x, const T* mean, const T* d_y,
                               const InputGradient<T>* gradient, T* d_x) {
  for (std::int64_t c = 0; c < channels; ++c)
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t i = r * channels + c;
      d_x[i] = gradient[c].slope * d_y[i] + gradient[c].through_mean + gradient[c].through_variance * (x[i] - mean[c]);
    }
}

}  // namespace miniqat::layers::reference
