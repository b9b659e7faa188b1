#include "core/graph/op.h"

#include "core/error.h"
#include "core/graph/fusion.h"

namespace miniqat {

std::vector<Shortcut> Op::shortcuts(const Node&, const Phase&) const { return {}; }

std::optional<Fusion> Op::fuse(const Node&, const FusionScope&) const { return std::nullopt; }

void Op::unpack(const ForwardContext&) const { fail(type(), " has no packed output"); }

void Op::backward(const BackwardContext&) const { fail(type(), " has no gradient"); }

void Op::reference_backward(const BackwardContext&) const { fail(type(), " has no gradient"); }

}  // namespace miniqat
