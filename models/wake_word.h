#pragma once

#include "models/models.h"

namespace miniqat::models {

/// The network of MLPerf Tiny's streaming wake word (the benchmark's `streaming_wakeword/keras_model.py`, `ds_tcn`):
/// four blocks of a depthwise convolution over 3, 5, 10 and 15 steps, all VALID, without bias, batch norm or
/// activation, and a convolution over one step with 128, 128, 128 and 32 channels, batch norm (epsilon 0.001), Relu and
/// dropout 0.2; dense `outputs`. It takes [n, steps, channels]; a picture [n, h, w, c] is h steps of w * c channels.
/// Fewer than 30 steps are refused, more than 30 leave several to the dense layer. The convolutions have pixels in a
/// column, [n, steps, 1, channels]. With 30 steps of 40 bands and 3 outputs 47,707 parameters as Keras counts them,
/// 46,875 trained, and 826,368 multiply-adds. Nodes live under steps, block1/depthwise, block1/pointwise,
/// block1/dropout, ..., block4/dropout, flatten, fc.
Output wake_word(Graph& graph, Output images, const ModelOptions& options = {});

}  // namespace miniqat::models
