#include "core/graph/op.h"

#include "core/error.h"

namespace miniqat {

void Op::backward(const BackwardContext&) const { fail(type(), " has no gradient"); }

void Op::reference_backward(const BackwardContext&) const { fail(type(), " has no gradient"); }

}  // namespace miniqat
