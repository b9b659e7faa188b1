#include "layers/layers.h"

#include "core/graph/registry.h"

namespace miniqat::layers {
namespace {

template <class... Ops>
void register_each(OpList<Ops...>) {
  (register_op<Ops>(), ...);
}

}  // namespace

void register_ops() {
  register_source_ops();
  register_each(AllOps{});
}

}  // namespace miniqat::layers
