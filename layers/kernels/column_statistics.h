#pragma once

#include <cstdint>
#include <span>

namespace miniqat::layers {

// One reading pass over a matrix [rows, channels] of float32 for what batch norms and observers want to know of every
// channel. Parallel, without allocation; the same result whatever the instruction set, and for a given thread count
// always the same.

/// Mean and biased variance, each [channels]; neither is finite where a channel holds a NaN (both are NaN then) or an
/// infinity. rows >= 1.
/// `least` and `largest` [channels] may both be null; of channels with a NaN they say nothing.
void column_moments(const float* x, std::int64_t rows, std::int64_t channels, float* mean, float* variance,
                    float* least, float* largest);

/// The smallest and the largest of every channel's numbers, NaNs left aside; returns whether there was one. Element i
/// of n belongs to channel i % channels; a channel without elements gets +infinity and -infinity. A zero comes without
/// its sign. The same for every number of threads.
bool column_ranges(const float* x, std::int64_t n, std::int64_t channels, float* least, float* largest);

}  // namespace miniqat::layers
