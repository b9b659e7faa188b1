// Layers that compute with the integers of their inputs (Arithmetic::kInteger): exact sums, gradients as simulated.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "bench/judge/step_judge.h"
#include "core/engine/plan/plan.h"
#include "core/engine/session.h"
#include "core/kernels/onednn.h"
#include "core/tensors/random.h"
#include "core/threads/parallel.h"
#include "layers/layers.h"
#include "layers/reference/conv2d.h"
#include "optim/sgd.h"
#include "quantize/fake_quant.h"
#include "tests/errors.h"
#include "tests/fewer_cases.h"

namespace miniqat::quantize::integer_layers_test {
namespace {

using testing::error_of;
using testing::mentions;
using testing::OneIn;

/// images -> (Relu) -> FakeQuant -> Conv2D <- FakeQuant <- filter, and the mean of what becomes of it squared; or with
/// `matrix` a MatMul of the images as rows.
struct LayerCase {
  Shape images;
  Shape filter;
  layers::Conv2dAttributes window = {};
  bool matrix = false;
  FakeQuantAttributes x = {};
  FakeQuantAttributes w = {};
  int w_axes = 1;
  bool relu = true;

  std::string text() const {
    return concat(matrix ? "MatMul " : "Conv2D ", images, " by ", filter, ", x ", x.bits, " bits, w ", w.bits,
                  w.symmetric ? " symmetric" : "", w.narrow_range ? " narrow" : "", ", axes ", w_axes, ", stride ",
                  window.strides[0], ", dilation ", window.dilations[0], relu ? ", Relu" : "", ", ", thread_count(),
                  " threads");
  }
};

struct LayerNet {
  Graph graph;
  Output images, filter, x, w, y, loss;

  explicit LayerNet(const LayerCase& c) {
    images = placeholder(graph, "images", c.images);
    filter = variable(graph, "filter", c.filter, Initializer::truncated_normal(0.5));
    x = fake_quant(graph, "x", c.relu ? layers::relu(graph, "relu", images) : images, c.x, {-0.7, 1.9});
    w = fake_quant(graph, "w", filter, c.w, {-1.2, 0.8}, c.w_axes);
    const Output in =
        c.matrix ? layers::reshape(graph, "rows", x, {.shape = {c.images[0], c.images.elements() / c.images[0]}}) : x;
    y = c.matrix ? layers::matmul(graph, "layer", in, w) : layers::conv2d(graph, "layer", in, w, c.window);
    std::vector<std::int64_t> axes;
    for (int i = 0; i < y.shape().rank(); ++i) axes.push_back(i);
    loss = layers::mean(graph, "loss", layers::square(graph, "square", y), {.axes = axes});
  }

  /// A training step; with `all` the layer's inputs and output, too.
  RunRequest step(bool all) const {
    RunRequest request = {
        .fetches = {loss}, .gradients_of = loss, .gradient_targets = {filter, images}, .training = true};
    if (all) request.fetches.insert(request.fetches.end(), {y, x, w});
    return request;
  }
};

Tensor images_of(const LayerCase& c, std::uint64_t key) {
  Tensor images(c.images);
  Random random(key);
  for (float& value : images.values<float>()) value = random.normal();
  return images;
}

/// Whether the layer reads bytes in this plan, or why not, and whether its input has float32 numbers as well.
struct Reading {
  bool packed = false;
  bool floats = false;
  std::string why_float = {};
};

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

/// The layer's output from the double reference of the integers.
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

/// Beside the largest number.
void expect_near(const Tensor& got, const Tensor& wanted, double tolerance, const std::string& what) {
  double largest = 0;
  for (const float value : wanted.values<float>()) largest = std::max(largest, std::abs(double{value}));
  for (std::int64_t i = 0; i < got.elements(); ++i)
    ASSERT_NEAR(got.data<float>()[i], wanted.data<float>()[i], tolerance * largest) << what << ", element " << i;
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

void check_layer(const LayerCase& c, bool reads_packed) {
  SCOPED_TRACE(c.text());
  LayerNet net(c);
  EXPECT_EQ(reading_of(net, net.step(true)).packed, reads_packed);
  EXPECT_TRUE(reading_of(net, net.step(true)).floats);
  // Where nobody asks for them, a chain does not write its floats.
  EXPECT_EQ(reading_of(net, net.step(false)).floats, !reads_packed || !c.relu);
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

/// Whether bytes that oneDNN multiplies exactly hold a weight's integers, less the zero point or half of the codes.
bool is_exact(const FakeQuantAttributes& w) { return 1 << (w.bits - 1) <= onednn::exact_byte(); }

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
