#pragma once

#include <cstdint>
#include <string>

namespace miniqat::fuzz {

/// Some steps of Sgd or Adam with random options on a variable of a random shape and 1 to 8 threads, beside the
/// formulas of optim/sgd.h and optim/adam.h in double, step by step from the same numbers. Returns what is wrong, ""
/// when all is well; adds to `compared`. A pure function of the seed.
std::string judge_optimizer(std::uint64_t seed, std::int64_t& compared);

}  // namespace miniqat::fuzz
