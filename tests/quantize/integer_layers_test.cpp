// Layers that compute with the integers of their inputs (Arithmetic::kInteger): exact sums, gradients as simulated.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "bench/judge/step_judge.h"
#include "core/engine/session.h"
#include "core/kernels/onednn_bytes.h"
#include "core/tensors/random.h"
#include "core/threads/parallel.h"
#include "layers/layers.h"
#include "optim/sgd.h"
#include "quantize/fake_quant.h"
#include "tests/errors.h"
#include "tests/fewer_cases.h"
#include "tests/quantize/integer_layer_case.h"

namespace miniqat::quantize::integer_layers_test {
namespace {

using testing::error_of;
using testing::mentions;
using testing::OneIn;

std::vector<LayerCase> geometries() {
  std::vector<LayerCase> all = {
      {.images = {2, 7, 9, 8}, .filter = {3, 3, 8, 5}},
      {.images = {3, 8, 8, 16}, .filter = {3, 3, 16, 16}},
      {.images = {1, 11, 6, 17}, .filter = {5, 3, 17, 33}, .window = {.strides = {2, 1}}},
      {.images = {2, 9, 9, 9}, .filter = {3, 3, 9, 8}, .window = {.padding = Padding::kValid}},
      {.images = {2, 12, 12, 8}, .filter = {3, 3, 8, 12}, .window = {.dilations = {2, 3}}},
      {.images = {2, 7, 7, 12},
       .filter = {2, 4, 12, 7},
       .window = {.strides = {2, 2}, .padding = Padding::kExplicit, .pads = {0, 2, 1, 0}}},
      {.images = {2, 14, 14, 6}, .filter = {5, 5, 6, 16}, .window = {.padding = Padding::kValid}},
      {.images = {3, 5, 4, 40}, .filter = {1, 1, 40, 24}},
      {.images = {5, 6, 6, 32}, .filter = {1, 1, 32, 8}, .window = {.strides = {2, 2}}},
      {.images = {33, 8, 8, 16}, .filter = {1024, 40}, .matrix = true},
      {.images = {1, 16, 16, 16}, .filter = {4096, 257}, .matrix = true},
      {.images = {64, 8, 8, 16}, .filter = {1024, 130}, .matrix = true},
      {.images = {2, 12, 12, 16}, .filter = {3, 3, 16, 12}, .window = {.dilations = {2, 3}}},
      {.images = {2, 7, 7, 12},
       .filter = {2, 4, 12, 9},
       .window = {.strides = {2, 2}, .padding = Padding::kExplicit, .pads = {0, 2, 1, 0}}},
      {.images = {5, 6, 6, 32}, .filter = {1, 1, 32, 12}, .window = {.strides = {2, 2}}},
      {.images = {2, 2, 10, 17}, .filter = {1, 1, 17, 128}, .window = {.strides = {2, 2}}},
  };
  // Of matrices and of pixels: nearly every extent has another kernel.
  constexpr std::int64_t kMatrices[][3] = {{127, 129, 65}, {1, 8257, 127}, {3, 11279, 31},  {65, 2049, 15},
                                           {513, 127, 33}, {4099, 31, 17}, {1025, 1031, 1}, {129, 1025, 63}};
  for (const auto& [rows, inner, columns] : kMatrices)
    all.push_back({.images = {rows, 1, 1, inner}, .filter = {inner, columns}, .matrix = true});
  constexpr std::int64_t kPixels[][5] = {{1, 1, 1, 6, 1},   {2, 3, 1, 7, 2},   {1, 17, 1, 15, 3},  {3, 5, 7, 31, 7},
                                         {7, 1, 1, 63, 31}, {1, 7, 3, 65, 33}, {2, 3, 5, 127, 63}, {1, 1, 2, 17, 129}};
  for (const auto& [n, h, w, in, out] : kPixels) all.push_back({.images = {n, h, w, in}, .filter = {1, 1, in, out}});
  return all;
}

TEST(IntegerLayers, SumsAreExactAndGradientsAsSimulated) {
  OneIn chosen(5);
  for (const LayerCase& geometry : geometries())
    for (const std::int64_t bits : {2, 4, 6, 7, 8})
      for (const bool symmetric : {false, true})
        for (const bool learned : {false, true})
          for (const bool per_channel : {false, true}) {
            if (!chosen()) continue;
            LayerCase c = geometry;
            set_thread_count(1 + bits % 3);
            c.x =
                quantizer(learned ? bits : 8, false, false, learned ? RangeKind::kLearned : RangeKind::kMovingAverage);
            c.w =
                quantizer(bits, symmetric, symmetric && learned, learned ? RangeKind::kLearned : RangeKind::kLastValue);
            c.w_axes = per_channel ? 1 : 0;
            c.relu = bits != 4;
            check_layer(c, is_exact(c.w));
            if (HasFatalFailure() || HasFailure()) return;
          }
}

/// All products at their largest: in 16 bits pairs of them would not fit. Of every `opposite` weights one is at the
/// other end of their range; 0: none is. Without a Relu all integers of x are negative.
Reading check_worst_case(const LayerCase& c, int opposite) {
  SCOPED_TRACE(c.text());
  LayerNet net(c);
  Session session(net.graph, {.arithmetic = Arithmetic::kInteger});
  session.set_variable("x/min", Tensor::scalar(c.relu ? 0.0f : -255.0f));
  session.set_variable("x/max", Tensor::scalar(c.relu ? 255.0f : 0.0f));
  Tensor images(c.images), filter(c.filter), low(Shape{c.filter.channels()}), high(low.shape());
  std::ranges::fill(images.values<float>(), c.relu ? 1000.0f : -1000.0f);
  // The end that is further from 0.
  const float most = c.w.symmetric ? -1000.0f : 1000.0f;
  for (std::int64_t i = 0; i < filter.elements(); ++i)
    filter.data<float>()[i] = opposite != 0 && i / c.filter.channels() % opposite == 0 ? -most : most;
  // Asymmetric ones are 0 or the largest there is: less the middle of the codes both are at the ends of their bytes.
  const float lowest = c.w.symmetric ? -std::exp2(static_cast<float>(c.w.bits - 1)) : 0.0f;
  std::ranges::fill(low.values<float>(), lowest);
  std::ranges::fill(high.values<float>(), lowest + std::exp2(static_cast<float>(c.w.bits)) - 1);
  session.set_variable("filter", filter);
  session.set_variable("w/min", low);
  session.set_variable("w/max", high);
  const RunResult got = session.run({.fetches = {net.loss, net.y, net.x, net.w}}, {{net.images, images}});
  const Tensor sums = expected_output(c, net, session, got.fetched[2], got.fetched[3]);
  const Reading reading = reading_of(net, {.fetches = {net.loss, net.y}});
  // A float32 sum of many equal products rounds in the same direction again and again.
  reading.packed ? expect_equal(got.fetched[1], sums, c.text()) : expect_near(got.fetched[1], sums, 1e-3, c.text());
  return reading;
}

TEST(IntegerLayers, TheWorstCaseIsExact) {
  for (const std::int64_t bits : {7, 8})
    for (const bool symmetric : {false, true})
      for (const bool matrix : {false, true}) {
        LayerCase c = {
            .images = {4, 8, 8, 64}, .filter = matrix ? Shape{4096, 64} : Shape{3, 3, 64, 32}, .matrix = matrix};
        c.x = quantizer(8, false, false, RangeKind::kFixed);
        c.w = quantizer(bits, symmetric, false, RangeKind::kFixed);
        if (is_exact(c.w)) {
          EXPECT_TRUE(check_worst_case(c, 5).packed);
        }
      }
}

/// The most terms whose sums fit whatever the integers are: 2 * 255 * terms * 2^bits is below 2^31; symmetric weights
/// have 2^(bits - 1) instead.
struct SumBound {
  std::int64_t bits;
  bool symmetric;
  std::int64_t terms;
};

TEST(IntegerLayers, NoMoreTermsThan32BitsHold) {
  for (const SumBound& bound : {SumBound{8, false, 16'448}, {8, true, 32'896}, {7, true, 65'793}})
    for (const std::int64_t terms : {bound.terms - 1, bound.terms, bound.terms + 1})
      for (const bool matrix : {false, true}) {
        // A million products, from which on bytes are faster.
        const std::int64_t columns = (std::int64_t{1} << 20) / (2 * terms) + 1;
        LayerCase c = {.images = {2, 1, 1, terms},
                       .filter = matrix ? Shape{terms, columns} : Shape{1, 1, terms, columns},
                       .matrix = matrix,
                       .relu = matrix};
        c.x = quantizer(8, false, false, RangeKind::kFixed);
        c.w = quantizer(bound.bits, bound.symmetric, false, RangeKind::kFixed);
        if (!is_exact(c.w)) continue;
        const Reading reading = check_worst_case(c, 0);
        EXPECT_EQ(reading.why_float, terms > bound.terms ? "its sums may need more than 32 bits" : "") << c.text();
      }
}

/// The grid of such a channel has scale 1, beside which the others' gradients would vanish.
TEST(IntegerLayers, AChannelOfZerosLeavesTheOthersTheirGradients) {
  if (!has_int8_products()) GTEST_SKIP() << "this processor has no exact products of signed bytes";
  LayerCase c = {.images = {2, 8, 8, 16}, .filter = {3, 3, 16, 16}};
  c.x = quantizer(8, false, false, RangeKind::kMovingAverage);
  for (const bool symmetric : {true, false}) {
    c.w = quantizer(8, symmetric, symmetric, RangeKind::kLastValue);
    c.w_axes = 1;
    LayerNet net(c);
    Tensor filter(c.filter);
    Random random(3);
    constexpr std::int64_t kDead = 5;
    for (std::int64_t i = 0; i < filter.elements(); ++i)
      filter.data<float>()[i] = i % c.filter[3] == kDead ? 0 : 0.01f * random.normal();
    Session session(net.graph, {.arithmetic = Arithmetic::kInteger, .rounding = FactorRounding::kGradientsToInt8}),
        simulated(net.graph);
    const Feeds feeds = {{net.images, images_of(c, 1)}};
    for (Session* one : {&session, &simulated}) one->set_variable("filter", filter);
    bench::StepJudge judge;
    session.set_observer(&judge);
    const Output sum = layers::mean(net.graph, concat("sum", symmetric), net.y, {.axes = {0, 1, 2, 3}});
    const RunRequest step = {.gradients_of = sum, .gradient_targets = {net.filter, net.images}, .training = true};
    const RunResult got = session.run(step, feeds), wanted = simulated.run(step, feeds);
    ASSERT_TRUE(judge.findings.empty()) << judge.findings.front().text();
    for (std::size_t k = 0; k < 2; ++k) expect_near(got.gradients[k], wanted.gradients[k], 0.1, concat("gradient ", k));
  }
}

/// Nor has a byte of the gradient: of the picture that it reaches, and of the filter, nothing is left.
TEST(IntegerLayers, AGradientThatIsNoNumberIsNotLost) {
  if (!has_int8_products()) GTEST_SKIP() << "this processor has no exact products of signed bytes";
  LayerCase c = {.images = {2, 8, 8, 16}, .filter = {3, 3, 16, 16}};
  c.x = c.w = quantizer(4, true, false, RangeKind::kFixed);
  LayerNet net(c);
  const Output weighting = placeholder(net.graph, "weighting", net.y.shape());
  const Output weighted = layers::mul(net.graph, "weighted", net.y, weighting);
  Session session(net.graph, {.arithmetic = Arithmetic::kInteger, .rounding = FactorRounding::kGradientsToInt8});
  Tensor weights(net.y.shape());
  std::ranges::fill(weights.values<float>(), 1.0f);
  weights.data<float>()[weights.elements() - 1] = std::numeric_limits<float>::infinity();
  const RunResult got =
      session.run({.gradients_of = weighted, .gradient_targets = {net.filter, net.images}, .training = true},
                  {{net.images, images_of(c, 1)}, {weighting, weights}});
  const auto d_images = got.gradients[1].values<float>();
  EXPECT_TRUE(std::ranges::all_of(d_images.first(d_images.size() / 2), [](float d) { return std::isfinite(d); }));
  EXPECT_TRUE(std::ranges::any_of(d_images.last(d_images.size() / 2), [](float d) { return std::isnan(d); }));
  EXPECT_TRUE(std::ranges::any_of(got.gradients[0].values<float>(), [](float d) { return std::isnan(d); }));
}

/// Bytes have no NaN: the step must be refused all the same.
TEST(IntegerLayers, ANanIsNotLost) {
  for (const RangeKind range : {RangeKind::kMovingAverage, RangeKind::kLearned}) {
    LayerCase c = {.images = {2, 8, 8, 16}, .filter = {3, 3, 16, 16}};
    c.x = quantizer(4, false, false, range);
    c.w = quantizer(4, false, false, RangeKind::kLastValue);
    c.relu = false;
    if (!is_exact(c.w)) GTEST_SKIP() << "this processor has no exact products of bytes";
    LayerNet net(c);
    ASSERT_TRUE(reading_of(net, net.step(false)).packed);
    Session session(net.graph, {.arithmetic = Arithmetic::kInteger});
    const optim::Sgd sgd({.learning_rate = 0.01});
    Tensor images = images_of(c, 1);
    images.data<float>()[images.elements() - 3] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(mentions(error_of([&] { session.train_step(net.loss, sgd, {{net.images, images}}); }), {"\"images\""}));
  }
}

/// Before quant_delay a layer multiplies floats, from then on integers.
TEST(IntegerLayers, StartWithTheDelay) {
  LayerCase c = {.images = {2, 8, 8, 16}, .filter = {3, 3, 16, 16}};
  c.x = c.w = quantizer(4, false, false, RangeKind::kMovingAverage);
  c.x.delay = c.w.delay = 2;
  if (!is_exact(c.w)) GTEST_SKIP() << "this processor has no exact products of bytes";
  LayerNet net(c);
  Session integers(net.graph, {.arithmetic = Arithmetic::kInteger}), simulated(net.graph);
  const Feeds feeds = {{net.images, images_of(c, 1)}};
  for (int step = 1; step <= 3; ++step) {
    const RunResult got = integers.run(net.step(true), feeds), wanted = simulated.run(net.step(true), feeds);
    const Tensor sums = expected_output(c, net, integers, got.fetched[2], got.fetched[3]);
    expect_equal(got.fetched[1], step < 2 ? wanted.fetched[1] : sums, concat("step ", step));
  }
}

}  // namespace
}  // namespace miniqat::quantize::integer_layers_test
