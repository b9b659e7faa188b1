#pragma once

#include <cstdint>

namespace miniqat::layers {

/// The sums by column of several threads. A matrix [rows, width] is shared out in `parts`, and every part has an
/// accumulator a column. Column j belongs to channel j % channels, so that loops along a row are long even if there are
/// few channels.
struct ColumnParts {
  std::int64_t channels = 1;
  /// A multiple of the channels.
  std::int64_t width = 1;
  std::int64_t parts = 1;

  /// From one part's accumulators to the next one's: they stay aligned and share no cache line.
  std::int64_t stride() const { return (width + 47) / 16 * 16; }
  std::int64_t size() const { return parts * stride(); }

  /// Calls body(i, part) for all accumulators i of channel c.
  template <class Body>
  void for_each(std::int64_t c, const Body& body) const {
    for (std::int64_t part = 0; part < parts; ++part)
      for (std::int64_t i = part * stride() + c; i < part * stride() + width; i += channels) body(i, part);
  }
};

}  // namespace miniqat::layers
