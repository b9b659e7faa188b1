#pragma once

#include "core/engine/part_work.h"
#include "core/graph/op.h"

namespace miniqat {

/// Of the fast forward, and of the fast backward: the tensors that OpTraits says backward reads, and for a layer one
/// product for each gradient. The tensors must be bound. Nothing for an op that only shows its input in another shape.
PartWork work_of(const Op& op, const ForwardContext& context);
PartWork work_of(const Op& op, const BackwardContext& context);

}  // namespace miniqat
