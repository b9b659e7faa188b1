#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace miniqat {

class Op;

using OpFactory = std::function<std::shared_ptr<Op>()>;

/// Makes op types known by name, so that graph JSON can be read. Registering happens explicitly, from
/// layers::register_ops() and quantize::register_ops(), never from static initialisers that a linker may drop.
/// These two are idempotent and cheap. All functions here may run on several threads at once.
void register_op(std::string_view type, OpFactory factory);

template <class Kind>
void register_op() {
  register_op(Kind::kType, [] { return Kind::make(); });
}

/// An op of that type with default attributes. Throws Error that lists the known types.
std::shared_ptr<Op> make_op(std::string_view type);

/// All types, sorted.
std::vector<std::string> registered_ops();

}  // namespace miniqat
