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

std::optional<Tensor> GradientTree::add(std::size_t tensor, int leaf, const Tensor& gradient, bool stays) {
  Sums& sums = sums_[tensor];
  Sum sum{gradient};
  for (std::size_t node = leaves_ + static_cast<std::size_t>(leaf); node > 1; node /= 2) {
    Sum other;
    {
      const std::lock_guard lock(sums.mutex);
      other = std::exchange(sums.waiting[node ^ 1], {});
      if (!other.tensor.defined()) {
        // (Meanwhile others wait who come to this tensor.)
        sums.waiting[node] = stays || sum.is_buffer ? sum : Sum{copy_of(sums, sum.tensor), true};
        return std::nullopt;
      }
    }
    // a + b is b + a: only the brackets matter.
    add_to(other.tensor, sum.tensor);
    if (sum.is_buffer) {
      const std::lock_guard lock(sums.mutex);
      sums.free.push_back(sum.tensor);
    }
    sum = other;
    stays = true;
  }
  return sum.tensor;
}

Tensor GradientTree::copy_of(Sums& sums, const Tensor& gradient) {
  if (sums.free.empty()) sums.free.push_back(sums.buffers.emplace_back(gradient.spec()));
  const Tensor copy = sums.free.back();
  sums.free.pop_back();
  copy.assign(gradient);
  return copy;
}

}  // namespace miniqat
