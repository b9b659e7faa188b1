// Ops between a quantizer and a layer that make bytes of its bytes (PassesPacked), so that the layer reads them.

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "core/threads/parallel.h"
#include "tests/quantize/integer_layer_case.h"

namespace miniqat::quantize::integer_layers_test {
namespace {

Output pooled(Graph& graph, Output x, std::array<std::int64_t, 2> window, std::array<std::int64_t, 2> strides,
              Padding padding) {
  return layers::max_pool(graph, "pool", x, {.window = window, .strides = strides, .padding = padding});
}

std::vector<LayerCase> passed_bytes() {
  const auto overlapping = [](Graph& g, Output x) { return pooled(g, x, {3, 3}, {2, 2}, Padding::kSame); };
  const auto apart = [](Graph& g, Output x) { return pooled(g, x, {2, 2}, {}, Padding::kValid); };
  const auto many_taps = [](Graph& g, Output x) { return pooled(g, x, {17, 17}, {1, 1}, Padding::kSame); };
  const auto part = [](Graph& g, Output x) {
    return layers::slice(g, "slice", x, {.axes = {3, 1}, .starts = {1, 0}, .ends = {18, 8}, .steps = {2, 3}});
  };
  const auto padded = [](Graph& g, Output x) {
    return layers::pad(g, "pad", x, {.paddings = {{0, 0}, {1, 2}, {0, 3}, {0, 0}}});
  };
  const auto twice = [](Graph& g, Output x) {
    const Output pool = pooled(g, x, {3, 2}, {1, 2}, Padding::kSame);
    return layers::pad(g, "pad", pool, {.paddings = {{0, 0}, {0, 1}, {1, 1}, {2, 3}}});
  };
  return {
      {.images = {2, 4, 5, 9}, .filter = {3, 3, 9, 12}, .pass = overlapping, .fed = {2, 7, 9, 9}},
      {.images = {3, 3, 4, 33}, .filter = {3, 3, 33, 16}, .pass = apart, .fed = {3, 7, 9, 33}},
      {.images = {2, 20, 18, 8}, .filter = {3, 3, 8, 7}, .pass = many_taps, .fed = {2, 20, 18, 8}},
      {.images = {2, 3, 9, 9}, .filter = {3, 3, 9, 12}, .pass = part, .fed = {2, 9, 9, 19}},
      {.images = {2, 10, 12, 17}, .filter = {5, 3, 17, 12}, .pass = padded, .fed = {2, 7, 9, 17}},
      {.images = {3, 9, 6, 16}, .filter = {1, 1, 16, 24}, .pass = twice, .fed = {3, 8, 8, 11}},
      {.images = {33, 8, 8, 16}, .filter = {1024, 40}, .matrix = true, .pass = overlapping, .fed = {33, 15, 16, 16}},
  };
}

TEST(PassedBytes, AreReadByTheLayerBehind) {
  for (const LayerCase& geometry : passed_bytes())
    for (const std::int64_t bits : {4, 8})
      for (const bool relu : {false, true}) {
        LayerCase c = geometry;
        set_thread_count(relu ? 3 : 1);
        c.x = quantizer(bits, false, false, bits == 4 ? RangeKind::kLearned : RangeKind::kMovingAverage);
        c.w = quantizer(bits, bits == 8, false, RangeKind::kLastValue);
        c.relu = relu;
        check_layer(c, is_exact(c.w));
        if (HasFatalFailure() || HasFailure()) return;
      }
}

/// Bytes cost time, too.
TEST(PassedBytes, AreNotMadeIfNobodyReadsThem) {
  LayerCase c = passed_bytes()[0];
  c.x = c.w = quantizer(4, false, false, RangeKind::kMovingAverage);
  if (!is_exact(c.w)) GTEST_SKIP() << "this processor has no exact products of bytes";
  LayerNet net(c);
  const PlanRequest request = {.fetches = {layers::relu(net.graph, "reader", net.x)},
                               .arithmetic = Arithmetic::kInteger};
  const auto plan = compile_plan(net.graph, request);
  for (const Plan::ForwardStep& step : plan->forward) {
    EXPECT_EQ(step.context.packed, nullptr) << step.node->name();
    EXPECT_TRUE(step.context.packed_inputs.empty()) << step.node->name();
  }
}

}  // namespace
}  // namespace miniqat::quantize::integer_layers_test
