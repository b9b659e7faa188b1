#pragma once

#include "core/tensor.h"

namespace miniqat {

/// A tensor of the graph, or the gradient of one, on its way to an address.
struct PlannedValue {
  static constexpr int kNone = -1;

  TensorSpec spec;
  /// The stretch of memory it lives in; kNone for tensors that the session binds and for constants.
  int buffer = kNone;
  /// The last step that reads it, apart from other values in the same buffer; the last one forward, and the first one
  /// backward, if any.
  int last_read = 0;
  int last_forward_read = 0;
  int first_backward_read = kNone;
  /// Where it is unpacked for backward; kNone when it stays in its buffer.
  int unpacked_buffer = kNone;
  /// The address; the Tensor's own memory is known once the arena is laid out.
  Tensor* tensor = nullptr;

  int backward_buffer() const { return unpacked_buffer != kNone ? unpacked_buffer : buffer; }
};

}  // namespace miniqat
