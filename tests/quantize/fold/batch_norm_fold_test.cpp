// The arithmetic of folding on numbers that a reader can follow; gradients are checked with the samples
// (tests/op_samples_folding.cpp).
#include "quantize/fold/batch_norm_fold.h"

#include <gtest/gtest.h>

#include <bit>
#include <cfloat>

#include "tests/layers/op_runner.h"

namespace miniqat::quantize::batch_norm_fold_test {
namespace {

using testing::expect_values;
using testing::run_op;

// With this epsilon a variance of 12 has sigma 4, one of 60 has sigma 8.
constexpr double kEpsilon = 4;

Tensor vector(const std::vector<float>& values) { return Tensor::from<float>({std::ssize(values)}, values); }

TEST(BatchNormFold, ByHand) {
  const auto result =
      run_op(BatchNormFold::make({kEpsilon}), {vector({2, 0}), vector({10, 7}), vector({9, 9}), vector({12, 12})});
  expect_values(result.outputs[0], {0.5f, 0}, "multiplier");
  expect_values(result.outputs[1], {5.5f, 7}, "bias");
}

TEST(BatchNormCorrection, ByHandBeforeAndAfterTheFreeze) {
  const std::vector<Tensor> inputs = {vector({2}), vector({9}), vector({12}), vector({12}), vector({60})};
  const auto op = BatchNormCorrection::make({.epsilon = kEpsilon, .freeze_delay = 3});
  EXPECT_EQ(delays_of(*op), std::vector<std::int64_t>{3});
  const auto before = run_op(op, inputs, {}, Backend::kFast, true, 2);
  expect_values(before.outputs[0], {0.5f}, "scale");
  expect_values(before.outputs[1], {2}, "recip");
  expect_values(before.outputs[2], {0}, "offset");
  const auto after = run_op(op, inputs, {}, Backend::kFast, true, 3);
  expect_values(after.outputs[0], {0.5f}, "scale once frozen");
  expect_values(after.outputs[1], {1}, "recip once frozen");
  expect_values(after.outputs[2], {1.5f}, "offset once frozen");
}

TEST(BatchNormScale, ByHand) {
  const auto result =
      run_op(BatchNormScale::make({.epsilon = kEpsilon}), {vector({2, -2, 0.25f}), vector({60, 12, 60})}, {});
  expect_values(result.outputs[0], {0.25f, -0.5f, 0.03125f}, "scale");
  expect_values(result.outputs[1], {4, -2, 32}, "recip");
}

TEST(BatchNormScale, StaysAwayFromZero) {
  const auto result = run_op(BatchNormScale::make({.epsilon = kEpsilon, .floor = 0.5}),
                             {vector({0, 0.25f, -0.25f, -0.5f, 0.75f}), vector({12, 12, 12, 12, 12})});
  expect_values(result.outputs[0], {0.125f, 0.125f, -0.125f, -0.125f, 0.1875f}, "scale");
  expect_values(result.outputs[1], {8, 8, -8, -8, 1 / 0.1875f}, "recip");
}

/// Numbers of many magnitudes and either sign, among them some that break formulas.
Tensor drawn(std::int64_t n, std::uint64_t key) {
  constexpr float kSpecial[] = {0,       -0.0f,    1e-12f,   -1e-3f,    FLT_MIN, FLT_TRUE_MIN,
                                FLT_MAX, -FLT_MAX, INFINITY, -INFINITY, NAN,     -FLT_TRUE_MIN};
  Tensor tensor(Shape{n});
  Random random(key);
  for (float& value : tensor.values<float>())
    value = random.below(4) == 0 ? kSpecial[random.below(std::size(kSpecial))]
                                 : random.normal() * std::exp2(random.uniform(-24, 24));
  return tensor;
}

void expect_same_bits(const std::vector<Tensor>& fast, const std::vector<Tensor>& reference, const std::string& what) {
  for (std::size_t k = 0; k < reference.size(); ++k)
    for (std::int64_t c = 0; reference[k].defined() && c < reference[k].elements(); ++c) {
      const float got = fast[k].data<float>()[c], wanted = reference[k].data<float>()[c];
      // Of two NaNs, the compiler may pass on either.
      ASSERT_TRUE(std::isnan(wanted) ? std::isnan(got)
                                     : std::bit_cast<std::uint32_t>(got) == std::bit_cast<std::uint32_t>(wanted))
          << what << ' ' << k << ", channel " << c << ": " << got << " instead of " << wanted;
    }
}

/// Over vectors of all lengths that vector instructions may cut differently, with any of the outputs' gradients.
void expect_fast_has_the_references_bits(const std::shared_ptr<const Op>& op, std::size_t inputs, std::size_t outputs,
                                         std::int64_t quantization_step = 0) {
  const bool differentiable = op->traits().no_gradient.size() < inputs;
  std::uint64_t key = 0;
  for (std::int64_t n = 1; n <= 67; ++n)
    for (unsigned arriving = 0; arriving < (differentiable ? 1u << outputs : 1u); ++arriving) {
      std::vector<Tensor> x, d_y;
      for (std::size_t i = 0; i < inputs; ++i) x.push_back(drawn(n, ++key));
      for (std::size_t k = 0; differentiable && k < outputs; ++k)
        d_y.push_back(arriving >> k & 1 ? drawn(n, ++key) : Tensor());
      const auto fast = run_op(op, x, d_y, Backend::kFast, true, quantization_step);
      const auto reference = run_op(op, x, d_y, Backend::kReference, true, quantization_step);
      expect_same_bits(fast.outputs, reference.outputs, "output");
      expect_same_bits(fast.d_inputs, reference.d_inputs, "gradient of input");
    }
}

TEST(BatchNormFold, FastHasTheReferencesBits) {
  for (const double epsilon : {0.0, 1e-3, 4.0})
    expect_fast_has_the_references_bits(BatchNormFold::make({epsilon}), 4, 2);
}

TEST(BatchNormCorrection, FastHasTheReferencesBits) {
  for (const double epsilon : {0.0, 1e-3})
    for (const bool frozen : {false, true})
      expect_fast_has_the_references_bits(BatchNormCorrection::make({.epsilon = epsilon, .freeze_delay = 0}), 5, 3,
                                          frozen ? 0 : -1);
}

TEST(BatchNormScale, FastHasTheReferencesBits) {
  for (const double floor : {1e-12, 1e-3, 4.0})
    expect_fast_has_the_references_bits(BatchNormScale::make({.floor = floor}), 2, 2);
}

}  // namespace
}  // namespace miniqat::quantize::batch_norm_fold_test
