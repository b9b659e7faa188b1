#pragma once

#include "core/files/safetensors.h"
#include "core/graph/graph.h"
#include "quantize/convert/static_values.h"

namespace miniqat::quantize {

/// Throws Error naming the first quantizer behind `output`, in topological order, whose range never saw a number: it is
/// still that of its initializer, which says nothing about the tensor. Where observations are counted, none was; the
/// last value of weights is not that of these weights; no learned range behind the output has moved. (One of several
/// may stay: a tensor of zeros moves nothing.) Fixed ranges, and ends that are no Variables, are meant as they are.
void require_seen_ranges(const Graph& graph, Output output, const NamedTensors& variables, const StaticValues& values);

}  // namespace miniqat::quantize
