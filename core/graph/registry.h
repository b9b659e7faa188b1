#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/op.h"

namespace miniqat {

using OpFactory = std::function<std::unique_ptr<Op>()>;

/// Makes op types known by name, so that graph JSON can be read. Registering happens explicitly, from
/// layers::register_ops() and quantize::register_ops(), never from static initialisers that a linker may drop.
/// Both are idempotent and cheap.
void register_op(std::string_view type, OpFactory factory);

template <class OpType>
void register_op() {
  register_op(OpType().type(), [] { return std::make_unique<OpType>(); });
}

/// An op of that type with default attributes. Throws Error that lists the known types.
std::unique_ptr<Op> make_op(std::string_view type);

/// All types, sorted.
std::vector<std::string> registered_ops();

}  // namespace miniqat
