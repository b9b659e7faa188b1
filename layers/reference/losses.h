#pragma once

#include <cmath>
#include <cstddef>
#include <span>

namespace miniqat::layers::reference {

// Means over all elements. `d_loss` is the gradient that arrives at the mean.

template <class T>
T mean_squared_error(std::span<const T> prediction, std::span<const T> target) {
  T sum = 0;
  for (std::size_t i = 0; i < prediction.size(); ++i) sum += (prediction[i] - target[i]) * (prediction[i] - target[i]);
  return sum / static_cast<T>(prediction.size());
}

template <class T>
void mean_squared_error_d_prediction(std::span<const T> prediction, std::span<const T> target, T d_loss,
                                     T* d_prediction) {
  for (std::size_t i = 0; i < prediction.size(); ++i)
    d_prediction[i] = 2 * (prediction[i] - target[i]) / static_cast<T>(prediction.size()) * d_loss;
}

template <class T>
T huber(std::span<const T> prediction, std::span<const T> target, T delta) {
  T sum = 0;
  for (std::size_t i = 0; i < prediction.size(); ++i) {
    const T error = std::abs(prediction[i] - target[i]);
    sum += error <= delta ? error * error / 2 : delta * (error - delta / 2);
  }
  return sum / static_cast<T>(prediction.size());
}

template <class T>
void huber_d_prediction(std::span<const T> prediction, std::span<const T> target, T delta, T d_loss, T* d_prediction) {
  for (std::size_t i = 0; i < prediction.size(); ++i) {
    T slope = prediction[i] - target[i];
    if (slope > delta) slope = delta;
    if (slope < -delta) slope = -delta;
    d_prediction[i] = slope / static_cast<T>(prediction.size()) * d_loss;
  }
}

template <class T>
T sigmoid_cross_entropy(std::span<const T> logits, std::span<const T> targets) {
  T sum = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const T positive = logits[i] < 0 ? T(0) : logits[i];
    sum += positive - logits[i] * targets[i] + std::log1p(std::exp(-std::abs(logits[i])));
  }
  return sum / static_cast<T>(logits.size());
}

template <class T>
void sigmoid_cross_entropy_d_logits(std::span<const T> logits, std::span<const T> targets, T d_loss, T* d_logits) {
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const T sigmoid = 1 / (1 + std::exp(-logits[i]));
    d_logits[i] = (sigmoid - targets[i]) / static_cast<T>(logits.size()) * d_loss;
  }
}

}  // namespace miniqat::layers::reference
