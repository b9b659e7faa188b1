#include "tests/quantize/integer_layer_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "bench/judge/step_judge.h"
#include "core/kernels/onednn_bytes.h"
#include "core/tensors/random.h"
#include "core/threads/parallel.h"
#include "layers/reference/conv2d.h"

namespace miniqat::quantize::integer_layers_test {
namespace {

/// As columns see the filter: the range of each, or of all.
std::vector<Affine<float>> grids_of(Session& session, const std::string& name, const FakeQuantAttributes& attributes) {
  const Tensor min = session.variable(name + "/min"), max = session.variable(name + "/max");
  std::vector<Affine<float>> grids;
  for (std::int64_t i = 0; i < min.elements(); ++i)
    grids.push_back(grid_of<float>({min.data<float>()[i], max.data<float>()[i]}, attributes.grid_options()));
  return grids;
}

std::vector<double> integers_of(const Tensor& values, const std::vector<Affine<float>>& grids) {
  std::vector<double> integers;
  for (std::int64_t i = 0; i < values.elements(); ++i)
    integers.push_back(
        std::round(double{values.data<float>()[i]} / grids[static_cast<std::size_t>(i) % grids.size()].scale));
  return integers;
}

/// Gradients in bfloat16 read the bytes alone, and differ by the roundings of what arrives, which cancel less than it.
void check_bfloat16_gradients(const LayerCase& c, LayerNet& net) {
  constexpr std::int64_t kFewChannels = 8;
  const bool is_rounded = c.matrix || std::min(c.filter[2], c.filter[3]) > kFewChannels;
  if (!onednn::has_bfloat16() || !is_rounded) return;
  Session session(net.graph, {.arithmetic = Arithmetic::kInteger, .rounding = FactorRounding::kGradientsToBfloat16}),
      simulated(net.graph);
  const Feeds feeds = {{net.images, images_of(c, 1)}};
  for (const bool all : {false, true}) {
    const RunResult got = session.run(net.step(all), feeds), wanted = simulated.run(net.step(all), feeds);
    for (std::size_t k = 0; k < 2; ++k) {
      expect_near(got.gradients[k], wanted.gradients[k], 0x1p-5, concat("gradient ", k, " in bfloat16"));
      EXPECT_FALSE(std::ranges::equal(got.gradients[k].values<float>(), wanted.gradients[k].values<float>()));
    }
  }
}

/// Gradients from bytes: the judge rounds what arrives itself. Nearly all of it cancels beside numbers as large.
void check_int8_gradients(const LayerCase& c, LayerNet& net) {
  if (!has_int8_products()) return;
  constexpr std::int64_t kFewChannels = 8, kFewProducts = 1 << 23;
  if (c.matrix ? c.images.elements() * c.filter[1] < kFewProducts : std::min(c.filter[2], c.filter[3]) <= kFewChannels)
    return;
  const Feeds feeds = {{net.images, images_of(c, 1)}};
  for (const bool all : {false, true}) {
    Session session(net.graph, {.arithmetic = Arithmetic::kInteger, .rounding = FactorRounding::kGradientsToInt8}),
        simulated(net.graph);
    bench::StepJudge judge;
    session.set_observer(&judge);
    const RunResult got = session.run(net.step(all), feeds), wanted = simulated.run(net.step(all), feeds);
    ASSERT_TRUE(judge.findings.empty()) << judge.findings.front().text();
    for (std::size_t k = 0; k < 2; ++k) {
      expect_near(got.gradients[k], wanted.gradients[k], 0.25, concat("gradient ", k, " in int8"));
      EXPECT_FALSE(std::ranges::equal(got.gradients[k].values<float>(), wanted.gradients[k].values<float>()));
    }
  }
}

}  // namespace

Tensor images_of(const LayerCase& c, std::uint64_t key) {
  Tensor images(c.fed_shape());
  Random random(key);
  for (float& value : images.values<float>()) value = random.normal();
  return images;
}

Reading reading_of(const LayerNet& net, const RunRequest& run) {
  const PlanRequest request = {.fetches = run.fetches,
                               .gradients_of = run.gradients_of,
                               .gradient_targets = run.gradient_targets,
                               .training = run.training,
                               .arithmetic = Arithmetic::kInteger};
  const auto plan = compile_plan(net.graph, request);
  const auto step = std::ranges::find(plan->forward, "layer", [](const auto& one) { return one.node->name(); });
  const std::vector<PlannedLayer> planned = planned_layers(net.graph, request);
  EXPECT_EQ(planned.size(), 1u);
  const Reading reading = {!step->context.packed_inputs.empty(), step->context.input(0).defined(),
                           planned.front().why_float};
  EXPECT_EQ(planned.front().on_integers, reading.packed);
  EXPECT_EQ(planned.front().why_float.empty(), reading.packed) << planned.front().why_float;
  return reading;
}

Tensor expected_output(const LayerCase& c, const LayerNet& net, Session& session, const Tensor& x, const Tensor& w) {
  const std::vector<Affine<float>> x_grid = grids_of(session, "x", c.x), w_grids = grids_of(session, "w", c.w);
  const std::vector<double> q_x = integers_of(x, x_grid), q_w = integers_of(w, w_grids);
  const Shape rows = {c.images[0], 1, 1, c.images.elements() / c.images[0]},
              columns = {1, 1, c.filter[0], c.filter.channels()};
  const Shape images = c.matrix ? rows : c.images, filter = c.matrix ? columns : c.filter;
  const layers::reference::Convolution reference = {
      layers::window_of(images, filter, c.matrix ? layers::Conv2dAttributes{} : c.window), images, filter};
  Tensor y(net.y.shape());
  std::vector<double> sums(static_cast<std::size_t>(y.elements()));
  layers::reference::conv2d<double>(reference, q_x.data(), q_w.data(), sums);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const std::size_t column = i % static_cast<std::size_t>(filter.channels());
    y.data<float>()[i] = static_cast<float>(sums[i]) * (x_grid[0].scale * w_grids[column % w_grids.size()].scale);
  }
  return y;
}

void expect_equal(const Tensor& got, const Tensor& wanted, const std::string& what) {
  ASSERT_EQ(got.shape(), wanted.shape());
  for (std::int64_t i = 0; i < got.elements(); ++i)
    ASSERT_EQ(got.data<float>()[i], wanted.data<float>()[i]) << what << ", element " << i;
}

void expect_near(const Tensor& got, const Tensor& wanted, double tolerance, const std::string& what) {
  double largest = 0;
  for (const float value : wanted.values<float>()) largest = std::max(largest, std::abs(double{value}));
  for (std::int64_t i = 0; i < got.elements(); ++i)
    ASSERT_NEAR(got.data<float>()[i], wanted.data<float>()[i], tolerance * largest) << what << ", element " << i;
}

void check_layer(const LayerCase& c, bool reads_packed) {
  SCOPED_TRACE(c.text());
  LayerNet net(c);
  EXPECT_EQ(reading_of(net, net.step(true)).packed, reads_packed);
  EXPECT_TRUE(reading_of(net, net.step(true)).floats);
  // Where nobody asks for them, a chain does not write its floats, nor does what passes bytes on.
  EXPECT_EQ(reading_of(net, net.step(false)).floats, !reads_packed || (!c.relu && c.pass == nullptr));
  Session integers(net.graph, {.arithmetic = Arithmetic::kInteger}),
      alone(net.graph, {.arithmetic = Arithmetic::kInteger}), simulated(net.graph);
  for (const std::uint64_t key : {1, 2}) {
    const Feeds feeds = {{net.images, images_of(c, key)}};
    const RunResult got = integers.run(net.step(true), feeds), wanted = simulated.run(net.step(true), feeds);
    const RunResult own = alone.run(net.step(false), feeds);
    for (const int k : {2, 3}) expect_equal(got.fetched[k], wanted.fetched[k], "what the quantizers give");
    if (reads_packed)
      expect_equal(got.fetched[1], expected_output(c, net, integers, got.fetched[2], got.fetched[3]), "sums");
    expect_near(got.fetched[1], wanted.fetched[1], 1e-5, "output");
    for (std::size_t k = 0; k < 2; ++k) {
      expect_near(got.gradients[k], wanted.gradients[k], 1e-5, concat("gradient ", k));
      expect_equal(own.gradients[k], got.gradients[k], concat("gradient ", k, " without the floats"));
    }
    expect_equal(own.fetched[0], got.fetched[0], "loss without the floats");
  }
  if (!reads_packed) return;
  check_bfloat16_gradients(c, net);
  check_int8_gradients(c, net);
}

FakeQuantAttributes quantizer(std::int64_t bits, bool symmetric, bool narrow, RangeKind range) {
  return {.bits = bits, .narrow_range = narrow, .symmetric = symmetric, .range = range};
}

bool is_exact(const FakeQuantAttributes& w) { return 1 << (w.bits - 1) <= onednn::exact_byte(); }

}  // namespace miniqat::quantize::integer_layers_test
