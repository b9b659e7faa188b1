#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "core/tensors/tensor.h"

namespace miniqat {

/// The sums of both halves of a batch's slices; `right` is undefined if there is one slice.
struct GradientHalves {
  Tensor left;
  Tensor right;
};

/// Adds the gradients of slices in a balanced binary tree over the slices, ((0 + 1) + (2 + 3)) + ..., whatever the
/// order in which they come: the sum has the same bits. The last addition is left to the caller, who may have more
/// threads for it then. Any threads may add at once. Working memory grows with the number of unfinished subtrees and
/// stays.
class GradientTree {
 public:
  /// `leaves`: slices, a power of two. `tensors`: gradients a slice has.
  GradientTree(int leaves, std::size_t tensors);

  /// Forgets what was added; results of earlier calls are no longer valid.
  void begin();
  /// The gradient of one tensor by one slice: float32 or float64, one shape for all slices. Once each since begin().
  /// Returns the halves if this was the last one to come; both may be overwritten. `stays`: the gradient's memory is
  /// not used for anything else until the next begin(), so that it need not be copied.
  std::optional<GradientHalves> add(std::size_t tensor, int leaf, const Tensor& gradient, bool stays);

 private:
  struct Sum {
    Tensor tensor = {};
    /// One of Sums::buffers.
    bool is_buffer = false;
  };
  /// The sums of one tensor.
  struct Sums {
    std::mutex mutex;
    /// By node of the tree (1 is the root, node i has the children 2 i and 2 i + 1): a sum that waits for the other
    /// child's.
    std::vector<Sum> waiting;
    std::vector<Tensor> buffers;
    std::vector<Tensor> free;
  };

  static Sum kept(Sums& sums, const Sum& sum, bool stays);

  const std::size_t leaves_;
  std::deque<Sums> sums_;
};

}  // namespace miniqat
