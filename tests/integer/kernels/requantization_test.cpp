#include "integer/kernels/requantization.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "core/tensors/random.h"
#include "integer/arithmetic.h"
#include "tests/fewer_cases.h"

namespace miniqat::integer::requantization_test {
namespace {

TEST(Requantization, FactorsGiveTheSameIntegers) {
  Random random(1);
  for (std::uint64_t i = 0; i < testing::fewer(200'000); ++i) {
    const Multiplier multiplier{.mantissa = static_cast<std::int32_t>(random.bits() >> (1 + random.below(31))),
                                .shift = static_cast<std::int32_t>(1 + random.below(62))};
    auto sum = static_cast<std::int32_t>(random.bits()) >> random.below(32);
    if (i % 10 == 0) sum = i % 20 == 0 ? INT32_MAX : -INT32_MAX;
    const RequantizationFactors q = requantization_factors(multiplier);
    const std::int32_t held = std::clamp(sum, -q.limit, q.limit) << q.left;
    const auto high = static_cast<std::int32_t>((std::int64_t{held} * q.mantissa) >> 32);
    const std::int32_t actual = std::clamp(((high + q.rounding) >> q.right) + 100, 0, 255);
    ASSERT_EQ(actual, requantize(sum, multiplier, 100, {}))
        << sum << " * " << multiplier.mantissa << " >> " << multiplier.shift;
  }
}

}  // namespace
}  // namespace miniqat::integer::requantization_test
