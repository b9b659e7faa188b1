#pragma once

#include <string>
#include <string_view>

#include "core/text/error.h"

namespace miniqat {

/// "1 step", "2 steps"; "2 batches"; "2 classes".
template <class Count>
std::string counted(Count count, std::string_view thing) {
  return concat(count, " ", thing, count == 1 ? "" : thing.ends_with("ch") || thing.ends_with("ss") ? "es" : "s");
}

}  // namespace miniqat
