#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace miniqat::layers::reference {

/// One row after the other; y must not be x.
template <class T>
void softmax(std::int64_t rows, std::int64_t channels, const T* x, T* y) {
  for (std::int64_t r = 0; r < rows; ++r, x += channels, y += channels) {
    T largest = x[0];
    for (std::int64_t c = 1; c < channels; ++c) largest = x[c] > largest ? x[c] : largest;
    T sum = 0;
    for (std::int64_t c = 0; c < channels; ++c) sum += std::exp(x[c] - largest);
    for (std::int64_t c = 0; c < channels; ++c) y[c] = std::exp(x[c] - largest) / sum;
  }
}

/// d_x[c] = sum over k of d_y[k] * d y_k / d x_c, where d y_k / d x_c = y_k * ((k == c) - y_c).
template <class T>
void softmax_d_x(std::int64_t rows, std::int64_t channels, const T* y, const T* d_y, T* d_x) {
  for (std::int64_t r = 0; r < rows; ++r, y += channels, d_y += channels, d_x += channels)
    for (std::int64_t c = 0; c < channels; ++c) {
      d_x[c] = 0;
      for (std::int64_t k = 0; k < channels; ++k) d_x[c] += d_y[k] * y[k] * ((k == c ? 1 : 0) - y[c]);
    }
}

/// The target of a row for class c.
inline double target(std::int64_t classes, std::int64_t c, std::int64_t label, double smoothing) {
  return smoothing / static_cast<double>(classes) + (c == label ? 1 - smoothing : 0);
}

/// What the label's class weighs; without weights all have 1.
inline double weight_of(const std::vector<double>& weights, std::int64_t label) {
  return weights.empty() ? 1 : weights[static_cast<std::size_t>(label)];
}

/// The mean loss of all rows.
template <class T>
T softmax_cross_entropy(std::int64_t rows, std::int64_t channels, const T* logits, const std::int32_t* labels,
                        double smoothing, const std::vector<double>& weights) {
  T loss = 0;
  for (std::int64_t r = 0; r < rows; ++r, logits += channels) {
    T largest = logits[0];
    for (std::int64_t c = 1; c < channels; ++c) largest = logits[c] > largest ? logits[c] : largest;
    T sum = 0;
    for (std::int64_t c = 0; c < channels; ++c) sum += std::exp(logits[c] - largest);
    T row = std::log(sum);
    for (std::int64_t c = 0; c < channels; ++c)
      if (const double t = target(channels, c, labels[r], smoothing); t > 0)
        row += static_cast<T>(t) * (largest - logits[c]);
    loss += static_cast<T>(weight_of(weights, labels[r])) * row;
  }
  return loss / static_cast<T>(rows);
}

template <class T>
void softmax_cross_entropy_d_logits(std::int64_t rows, std::int64_t channels, const T* logits,
                                    const std::int32_t* labels, double smoothing, const std::vector<double>& weights,
                                    T d_loss, T* d_logits) {
  std::vector<T> probabilities(rows * channels);
  softmax(rows, channels, logits, probabilities.data());
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::int64_t i = r * channels + c;
      d_logits[i] = static_cast<T>(weight_of(weights, labels[r])) *
                    (probabilities[i] - static_cast<T>(target(channels, c, labels[r], smoothing))) /
                    static_cast<T>(rows) * d_loss;
    }
}

}  // namespace miniqat::layers::reference
