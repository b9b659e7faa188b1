#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "core/kernels/scratch.h"
#include "layers/chain/chain_kernels.h"
#include "layers/kernels/column_parts.h"

namespace miniqat::layers {

/// Sums by channel of something that several threads add up in ChannelRows: in float32 over at most about
/// kFlushRows numbers a column, in float64 from there on.
class ChannelSums {
 public:
  static constexpr std::int64_t kFlushRows = 64;

  ChannelSums(ScratchScope& scope, std::int64_t channels, int parts)
      : columns_{channels, ChannelRow::width(channels), parts}, sums_(scope.filled<double>(columns_.size(), 0.0)) {}

  /// Adds a row of float sums to the sums of one thread and clears the row.
  void flush(std::int64_t part, float* row) {
    double* sum = sums_.data() + part * columns_.stride();
#pragma omp simd
    for (std::int64_t j = 0; j < columns_.width; ++j) sum[j] += static_cast<double>(row[j]);
    std::fill_n(row, columns_.width, 0.0f);
  }

  /// [channels], of all threads.
  void store(float* totals) const {
    for (std::int64_t c = 0; c < columns_.channels; ++c) {
      double total = 0;
      columns_.for_each(c, [&](std::int64_t i, std::int64_t) { total += sums_[i]; });
      totals[c] = static_cast<float>(total);
    }
  }

 private:
  ColumnParts columns_;
  std::span<double> sums_;
};

}  // namespace miniqat::layers
