#pragma once

#include <span>

#include "core/kernels/scratch.h"
#include "core/tensors/shard_statistic.h"
#include "layers/batch_norm.h"
#include "layers/chain/chain_kernels.h"

namespace miniqat::layers {

// The fast batch norm, alone (layers/batch_norm.cpp) and within a chain. layers/reference/batch_norm.h derives its
// formulas.

/// Where the context of an op has what belongs to a batch norm: inputs gamma, beta, moving_mean, moving_variance from
/// `input` on, and outputs 1 and 2, the statistics. Input 0 is x, and z = factor * x is what it normalises.
struct ChainNorm {
  BatchNormAttributes attributes = {};
  int input = 1;
  /// [c]; -1 for z = x.
  int factor_input = -1;
};

/// The moments of x by channel, [c] each: column_moments.
struct ChannelMoments {
  std::span<float> mean;
  std::span<float> variance;
};

/// y as a map of x, with the moments of x if the batch normalises (else `batch` is empty). Writes the statistics where
/// somebody reads them, the moving ones where the run updates them, and what backward needs, shift and 1 / sigma, into
/// the last of ForwardContext::saved, [2, c]. The map's vectors live in `scope`.
ChainMap normalisation(const ChainNorm& norm, const ForwardContext& context, const ChannelMoments& batch,
                       ScratchScope& scope);

/// This map once more, from what normalisation() left in ForwardContext::saved.
ChainMap saved_normalisation(const ChainNorm& norm, const ForwardContext& context, ScratchScope& scope);

/// Stages moving statistics as normalisation() does, from those of a whole batch: ShardStatistics of z by channel.
void store_moments(const ChainNorm& norm, const ForwardContext& context, std::span<const ShardStatistic> batch);

/// The gradients of gamma, beta and x. `work` says where the gradient arrives (d_y may be null, where it reaches only
/// the statistics) and what else is asked for; the rest of it is found here.
void normalisation_backward(const ChainNorm& norm, const BackwardContext& context, ChainBackward work,
                            ScratchScope& scope);

}  // namespace miniqat::layers
