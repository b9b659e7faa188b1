// Float networks as ONNX, in ONNX Runtime beside miniqat.

#include "exporters/onnx/onnx_float.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "core/text/error.h"
#include "exporters/onnx/onnx.h"
#include "tests/fewer_cases.h"
#include "tests/runtimes/float_networks.h"
#include "tests/runtimes/judge.h"

namespace miniqat::exporters::onnx_float_runtime_test {
namespace {

using testing::FloatNetwork;

/// A tensor of ours in the file's order.
Tensor channels_first(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  if (shape.rank() != 4) return tensor;
  Tensor turned({shape[0], shape[3], shape[1], shape[2]});
  const std::int64_t pixels = shape[1] * shape[2], channels = shape[3];
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    const std::int64_t channel = i % channels, pixel = i / channels % pixels, image = i / channels / pixels;
    turned.data<float>()[(image * channels + channel) * pixels + pixel] = tensor.data<float>()[i];
  }
  return turned;
}

/// Expects the runtime to compute what miniqat computes, with the optimizations that it makes unless it is told not to.
void expect_same(std::vector<FloatNetwork> networks, std::optional<std::int64_t> opset = {}) {
  std::vector<testing::Case> cases;
  for (const FloatNetwork& network : networks)
    cases.push_back(
        {onnx_float(network.graph, network.variables, {.opset = opset}), channels_first(network.random_input())});
  const testing::Verdict verdict = testing::judge(testing::kOnnxRuntime, cases);
  ASSERT_EQ(verdict.status, 0) << verdict.err;
  for (std::size_t i = 0; i < networks.size(); ++i) {
    const Tensor expected = channels_first(networks[i].results());
    Tensor found(expected.shape());
    ASSERT_EQ(verdict.outputs[i].size(), expected.bytes()) << i;
    std::memcpy(found.raw(), verdict.outputs[i].data(), expected.bytes());
    EXPECT_LE(testing::relative_difference(expected, found), 1e-5) << networks[i].name;
  }
}

TEST(OnnxFloatRuntime, ComputesWhatTheNetworkComputes) {
  MINIQAT_NEED_RUNTIMES();
  std::vector<FloatNetwork> networks = testing::single_ops();
  for (const char* name : {"lenet5", "lenet_bn", "resnet20", "resnet8", "ds_cnn", "autoencoder", "mobilenet_v2"})
    networks.push_back(testing::float_model(name));
  expect_same(std::move(networks));
}

TEST(OnnxFloatRuntime, ComputesWhatRandomNetworksCompute) {
  MINIQAT_NEED_RUNTIMES();
  expect_same(testing::random_float_networks(20));
  expect_same(testing::random_float_chains(static_cast<int>(testing::fewer(200, 3))));
}

/// What an optimization needs may depend on the versions of operators.
TEST(OnnxFloatRuntime, ComputesTheSameInEveryOpset) {
  MINIQAT_NEED_RUNTIMES();
  testing::OneIn chosen(2);
  for (std::int64_t opset = 14; opset <= kNewestOpset; ++opset) {
    if (!chosen() && opset < kNewestOpset) continue;
    SCOPED_TRACE(concat("opset ", opset));
    expect_same(testing::single_ops(), opset);
  }
}

}  // namespace
}  // namespace miniqat::exporters::onnx_float_runtime_test
