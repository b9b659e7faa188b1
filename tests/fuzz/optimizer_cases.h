#pragma once

#include <cstdint>
#include <string>

namespace miniqat::fuzz {

/// Some steps of Sgd, Adam or LogAdam with random options on a variable of a random shape and 1 to 8 threads, beside
/// the formulas of optim/sgd.h, optim/adam.h and optim/log_adam.h in double, step by step from the same numbers.
/// Returns what is wrong, "" when all is well; adds to `compared`. A pure function of the seed.
std::string judge_optimizer(std::uint64_t seed, std::int64_t& compared);

}  // namespace miniqat::fuzz
