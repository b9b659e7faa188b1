#include <gtest/gtest.h>

#include "core/graph/source_ops.h"
#include "core/text/json.h"
#include "quantize/quantizers.h"
#include "training/run/metrics_log.h"

namespace miniqat::training::range_log_test {
namespace {

using Json = nlohmann::ordered_json;

/// A quantizer of weights [2, 3] with a range for each channel, one with constants and one whose ends are fed.
struct Net {
  Net() {
    const Output w = variable(graph, "w", {2, 3});
    quantize::fake_quant(graph, "by_channel", w,
                         {.bits = 4, .per_channel = true, .range = quantize::RangeKind::kLastValue}, {}, 1);
    const Output low = constant(graph, "low", {}, {-1}), high = constant(graph, "high", {}, {3});
    const Output fed = placeholder(graph, "fed", {});
    const auto fixed = [&](const char* name, const Output& min) {
      graph.add(name, quantize::FakeQuant::make({.range = quantize::RangeKind::kFixed}), {w, min, high});
    };
    fixed("constants", low);
    fixed("unknown", fed);
  }

  Graph graph;
  NamedTensors variables = {{"by_channel/min", Tensor::from<float>({3}, {-0.1f, -0.5f, 0})},
                            {"by_channel/max", Tensor::from<float>({3}, {0.3f, 0.2f, 0.7f})}};
};

TEST(RangesJson, HasOnePairForAQuantizer) {
  const Net net;
  EXPECT_EQ(ranges_json(net.graph, net.variables),
            Json::parse(R"({"by_channel": [-0.5, 0.7], "constants": [-1.0, 3.0]})"));
  EXPECT_EQ(ranges_json(net.graph, net.variables)["by_channel"].dump(), "[-0.5,0.7]") << "no more digits than needed";
  EXPECT_EQ(ranges_json(net.graph, {}).size(), 1u) << "what has no value is left out";
}

TEST(QuantizerRanges, HaveTheGridsOfTheirRanges) {
  const Net net;
  const std::vector<quantize::QuantizerRange> ranges = quantize::quantizer_ranges(net.graph, net.variables);
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(ranges[0].quantizer, "by_channel");
  const std::vector<Affine<float>> grids = ranges[0].grids();
  ASSERT_EQ(grids.size(), 3u);
  EXPECT_FLOAT_EQ(grids[2].scale, 0.7f / 15);
  EXPECT_EQ(grids[2].zero_point, 0);
  EXPECT_FLOAT_EQ(ranges[1].grids()[0].scale, 4.0f / 255);
  EXPECT_EQ(ranges[1].grids()[0].zero_point, 64);
}

}  // namespace
}  // namespace miniqat::training::range_log_test
