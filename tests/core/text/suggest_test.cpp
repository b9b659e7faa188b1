#include "core/text/suggest.h"

#include <gtest/gtest.h>

namespace miniqat::suggest_test {
namespace {

using Names = std::vector<std::string>;

TEST(Suggest, TheNearestNameIsAskedFor) {
  const Names names = {"lenet", "lenet5", "mobilenet_v1", "resnet20"};
  EXPECT_EQ(did_you_mean("lnet", names), "; did you mean \"lenet\"?");
  EXPECT_EQ(did_you_mean("mobilenet", names), "; did you mean \"mobilenet_v1\"?");
  EXPECT_EQ(did_you_mean("vgg", names), "");
  EXPECT_EQ(did_you_mean("", names), "");
  EXPECT_EQ(did_you_mean("lenet", {}), "");
  // Two are equally far away: the first, or the one that the word is the beginning of.
  EXPECT_EQ(did_you_mean("lenet6", Names{"lenet4", "lenet5"}), "; did you mean \"lenet4\"?");
  EXPECT_EQ(did_you_mean("resnet", names), "; did you mean \"resnet20\"?");
}

TEST(Suggest, UpperAndLowerCaseAreTheSame) {
  EXPECT_EQ(did_you_mean("LENET5", Names{"lenet", "lenet5"}), "; did you mean \"lenet5\"?");
  EXPECT_EQ(did_you_mean("conv1/relu", Names{"conv1/Relu", "fc1/Relu"}), "; did you mean \"conv1/Relu\"?");
}

}  // namespace
}  // namespace miniqat::suggest_test
