#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "layers/reference/softmax.h"

namespace miniqat::layers::reference {

/// The mean loss of all rows.
template <class T>
T softmax_cross_entropy(std::int64_t rows, std::int64_t channels, const T* logits, const std::int32_t* labels) {
  T loss = 0;
  for (std::int64_t r = 0; r < rows; ++r, logits += channels) {
    T largest = logits[0];
    for (std::int64_t c = 1; c < channels; ++c) largest = logits[c] > largest ? logits[c] : largest;
    T sum = 0;
    for (std::int64_t c = 0; c < channels; ++c) sum += std::exp(logits[c] - largest);
    loss += std::log(sum) + (largest - logits[labels[r]]);
  }
  return loss / static_cast<T>(rows);
}

template <class T>
void softmax_cross_entropy_d_logits(std::int64_t rows, std::int64_t channels, const T* logits,
                                    const std::int32_t* labels, T d_loss, T* d_logits) {
  std::vector<T> probabilities(rows * channels);
  softmax(rows, channels, logits, probabilities.data());
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::int64_t i = r * channels + c;
      d_logits[i] = (probabilities[i] - (c == labels[r] ? 1 : 0)) / static_cast<T>(rows) * d_loss;
    }
}

}  // namespace miniqat::layers::reference
