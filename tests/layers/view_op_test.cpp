// A plan lets a view's tensors share memory where it can. Where it cannot, the op copies.

#include <gtest/gtest.h>

#include "layers/reshape.h"
#include "tests/layers/op_runner.h"

namespace miniqat::layers::view_op_test {
namespace {

using testing::run_op;

void expect_same_elements(const Tensor& a, const Tensor& b) {
  EXPECT_TRUE(std::ranges::equal(a.values<float>(), b.values<float>()));
}

TEST(ViewOp, CopiesBetweenMemoryThatIsNotShared) {
  const Tensor x = Tensor::from<float>({2, 3}, {1, -2, 3, -4, 5, -6}),
               d_y = Tensor::from<float>({2, 3}, {6, 5, 4, 3, 2, 1});
  for (const Backend backend : {Backend::kFast, Backend::kReference}) {
    const auto same = run_op(Identity::make(), {x}, {d_y}, backend);
    EXPECT_EQ(same.outputs[0].shape(), x.shape());
    expect_same_elements(same.outputs[0], x);
    expect_same_elements(same.d_inputs[0], d_y);
    const auto flat = run_op(Reshape::make({{-1}}), {x}, {d_y.reshaped({6})}, backend);
    EXPECT_EQ(flat.outputs[0].shape(), Shape{6});
    expect_same_elements(flat.outputs[0], x);
    expect_same_elements(flat.d_inputs[0], d_y);
    const auto open = run_op(Reshape::make({{1, -1, 2}}), {x}, {d_y.reshaped({1, 3, 2})}, backend);
    EXPECT_EQ(open.outputs[0].shape(), (Shape{1, 3, 2}));
    expect_same_elements(open.outputs[0], x);
    expect_same_elements(open.d_inputs[0], d_y);
  }
}

}  // namespace
}  // namespace miniqat::layers::view_op_test
