#pragma once

#include <set>
#include <string>
#include <string_view>

namespace miniqat::exporters {

/// The C of the kernels named ("convolve", "max_pool", ...) and of what they build upon, each once, and nothing else: a
/// compiler warns of a static function that nobody calls. Throws Error for a name that there is none of. The text
/// expects `static int32_t pool_sums[]`, `#define FILTER_SIZE` and `static int16_t filter[FILTER_SIZE]` before it,
/// where its kernels use them.
std::string c_runtime(const std::set<std::string_view>& kernels);

}  // namespace miniqat::exporters
