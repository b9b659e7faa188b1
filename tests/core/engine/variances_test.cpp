
#include <gtest/gtest.h>

#include "core/engine/session.h"
#include "layers/layers.h"
#include "tests/errors.h"

namespace miniqat::variances_test {
namespace {

using testing::error_of;
using testing::mentions;

struct Normalised {
  Graph graph;
  Output vector(const std::string& name, double value) {
    return variable(graph, name, {2}, Initializer::constant(value), false);
  }
  Output y = layers::batch_norm(graph, "bn", placeholder(graph, "x", {4, 2}), vector("gamma", 1), vector("beta", 0),
                                vector("mean", 0), vector("variance", 1));
};

Tensor pair(float first, float second) { return Tensor::from<float>({2}, std::vector{first, second}); }

TEST(Variances, ANegativeOneIsRefusedAndNothingChanges) {
  Normalised net;
  Session session(net.graph);
  const std::vector<std::string> parts = {"\"variance\"", "-0.5", "[BatchNorm \"bn\"]", "cannot be negative"};
  EXPECT_TRUE(mentions(error_of([&] { session.set_variable("variance", pair(1, -0.5f)); }), parts));
  for (const Session::Restore mode :
       {Session::Restore::kExact, Session::Restore::kVariables, Session::Restore::kByName}) {
    Safetensors content = session.checkpoint();
    content.tensors["variance"] = pair(2, -0.5f);
    content.tensors["mean"] = pair(3, 3);
    EXPECT_TRUE(mentions(error_of([&] { session.restore(content, mode, "file"); }), parts));
    EXPECT_TRUE(mentions(error_of([&] { session.restore(content, mode, "file"); }), {"file: variable"}));
    EXPECT_EQ(session.variable("variance").data<float>()[0], 1);
    EXPECT_EQ(session.variable("mean").data<float>()[0], 0);
  }
}

TEST(Variances, ZeroAndOtherVariablesAreFree) {
  Normalised net;
  Session session(net.graph);
  session.set_variable("variance", pair(0, 3));
  session.set_variable("variance", pair(-1e-12f, 3));
  session.set_variable("mean", pair(-4, -5));
  EXPECT_EQ(session.variable("mean").data<float>()[1], -5);
}

}  // namespace
}  // namespace miniqat::variances_test
