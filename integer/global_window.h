#pragma once

#include "core/window.h"

namespace miniqat::integer {

/// Whether there is one window and it is the whole image, every pixel once and no padding: what other formats have
/// operators of their own for.
inline bool is_global(const Window2d& window) {
  const auto is_whole = [](const WindowAxis& axis) {
    // A single tap has no distance to the next.
    const bool dense = axis.dilation == 1 || axis.window == 1;
    return axis.output == 1 && axis.pad_before == 0 && axis.window == axis.input && dense;
  };
  return is_whole(window.rows) && is_whole(window.columns);
}

}  // namespace miniqat::integer
