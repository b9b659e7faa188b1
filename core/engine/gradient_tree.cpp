#include "core/engine/gradient_tree.h"

#include <utility>

#include "core/engine/sweep.h"

namespace miniqat {

GradientTree::GradientTree(int leaves, std::size_t tensors)
    : leaves_(static_cast<std::size_t>(leaves)), sums_(tensors) {
  for (Sums& sums : sums_) sums.waiting.resize(2 * leaves_);
}

void GradientTree::begin() {
  for (Sums& sums : sums_) {
    for (Sum& sum : sums.waiting) sum = {};
    sums.free = sums.buffers;
  }
}

std::optional<GradientHalves> GradientTree::add(std::size_t tensor, int leaf, const Tensor& gradient, bool stays) {
  Sums& sums = sums_[tensor];
  Sum sum{gradient};
  for (std::size_t node = leaves_ + static_cast<std::size_t>(leaf); node > 1; node /= 2) {
    Sum other;
    {
      const std::lock_guard lock(sums.mutex);
      other = std::exchange(sums.waiting[node ^ 1], {});
      // (While a gradient is copied, others wait who come to this tensor.)
      if (!other.tensor.defined() || node / 2 == 1) sum = kept(sums, sum, stays);
      if (!other.tensor.defined()) {
        sums.waiting[node] = sum;
        return std::nullopt;
      }
    }
    if (node == 2) return GradientHalves{sum.tensor, other.tensor};
    if (node == 3) return GradientHalves{other.tensor, sum.tensor};
    // a + b is b + a: only the brackets matter.
    add_to(other.tensor, sum.tensor);
    if (sum.is_buffer) {
      const std::lock_guard lock(sums.mutex);
      sums.free.push_back(sum.tensor);
    }
    sum = other;
    stays = true;
  }
  return GradientHalves{sum.tensor, {}};
}

/// Where nobody else writes.
GradientTree::Sum GradientTree::kept(Sums& sums, const Sum& sum, bool stays) {
  if (stays || sum.is_buffer) return sum;
  if (sums.free.empty()) sums.free.push_back(sums.buffers.emplace_back(sum.tensor.spec()));
  Tensor copy = sums.free.back();
  sums.free.pop_back();
  copy.assign(sum.tensor);
  return {copy, true};
}

}  // namespace miniqat
