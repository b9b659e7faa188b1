#include <gtest/gtest.h>

#include "layers/leaky_relu.h"
#include "tests/importers/onnx/chain.h"

// Ops by known numbers.

namespace miniqat::importers::import_test {
namespace {

using testing::mentions;

TEST(ImportOps, LeakyReluHasItsSlope) {
  for (const float alpha : {0.25F, 0.0F}) {
    Chain net({1, 2, 1, 3});
    set_number(net.add("LeakyRelu"), "alpha", alpha);
    ImportedModel model = net.import();
    EXPECT_EQ(model.graph.outputs()[0].node->type(), alpha == 0 ? "Relu" : "LeakyRelu");
    const Tensor y =
        result_of(model, Tensor::from<float>({1, 1, 3, 2}, std::vector{-4.0F, 4.0F, -1.0F, 0.0F, 7.0F, -8.0F}));
    EXPECT_EQ(values_of(y), (std::vector<float>{-4 * alpha, 4, -1 * alpha, 0, 7, -8 * alpha}));
  }
  Chain usual({1, 2});
  usual.add("LeakyRelu");
  EXPECT_EQ(usual.import().graph.outputs()[0].node->as<layers::LeakyRelu>()->alpha, 0.01F);
  Chain negative({1, 2});
  set_number(negative.add("LeakyRelu"), "alpha", -0.5F);
  EXPECT_TRUE(mentions(negative.refusal(), {"[LeakyRelu \"the_LeakyRelu\"]", "alpha"}));
}

}  // namespace
}  // namespace miniqat::importers::import_test
