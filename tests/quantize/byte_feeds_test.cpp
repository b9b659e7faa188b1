// Feeds that are bytes with scale and zero point (core/engine/feeds.h): the bits of the numbers that they stand for,
// and the memory that they take.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/feeds.h"
#include "core/engine/plan/plan.h"
#include "core/engine/session.h"
#include "core/tensors/random.h"
#include "layers/layers.h"
#include "models/models.h"
#include "optim/sgd.h"
#include "quantize/fake_quant.h"
#include "quantize/rewrite/rewrite.h"
#include "tests/errors.h"
#include "tests/sliced_session.h"
#include "tests/thread_counts.h"

namespace miniqat::quantize::byte_feeds_test {
namespace {

using testing::error_of;
using testing::mentions;

constexpr CodeGrid kGrid = {1.0f / 60, 131};

Tensor random_codes(const Shape& shape, std::uint64_t key) {
  Tensor codes(shape, DType::kUInt8);
  Random random(key);
  for (std::uint8_t& code : codes.values<std::uint8_t>()) code = static_cast<std::uint8_t>(random.bits());
  return codes;
}

/// What bytes stand for, by the formula.
Tensor meaning_of(const CodedTensor& bytes) {
  Tensor numbers(bytes.shape());
  for (std::int64_t i = 0; i < bytes.elements(); ++i)
    numbers.data<float>()[i] =
        (static_cast<float>(bytes.data<std::uint8_t>()[i]) - bytes.grid->zero_point) * bytes.grid->scale;
  return numbers;
}

void expect_same_bits(const Tensor& got, const Tensor& wanted, const std::string& what) {
  ASSERT_EQ(got.spec(), wanted.spec()) << what;
  EXPECT_EQ(std::memcmp(got.raw(), wanted.raw(), got.bytes()), 0) << what;
}

/// A network that reads its pictures in every way that there is: as rows, in place, twice.
Output odd_network(Graph& graph, const Output& images) {
  const std::int64_t batch = images.shape()[0], pixels = images.shape().elements() / batch;
  const Output both = layers::add(graph, "both", layers::relu(graph, "relu", images), images);
  const Output rows = layers::reshape(graph, "rows", images, {.shape = {batch, pixels}});
  const Output more = layers::reshape(graph, "more", both, {.shape = {batch, pixels}});
  const Output sum = layers::add(graph, "sum", rows, more);
  return layers::matmul(graph, "fc", sum, variable(graph, "fc/weights", {pixels, 10}));
}

struct ByteCase {
  std::string model;
  std::int64_t batch;
  /// None: in float.
  std::optional<RewriteOptions> rewrite = {};
  Arithmetic arithmetic = Arithmetic::kSimulated;
  /// 0: steps of one batch.
  int shards = 0;
};

struct Net {
  Graph graph;
  Output images, labels, logits, loss;

  explicit Net(const ByteCase& c) {
    images = placeholder(graph, "images", {c.batch, 28, 28, 1});
    labels = placeholder(graph, "labels", {c.batch}, DType::kInt32);
    logits = c.model == "odd" ? odd_network(graph, images)
                              : models::find_model(c.model).build(graph, images, {.outputs = 10, .width = 0.25});
    loss = layers::softmax_cross_entropy(graph, logits, labels);
    if (c.rewrite) create_training_graph(graph, *c.rewrite);
  }
};

struct Trained {
  std::vector<float> losses;
  Tensor logits;
  NamedTensors checkpoint;
};

/// Some steps, the checkpoint taken over by a new session on the way, and logits.
Trained trained(const ByteCase& c, bool bytes) {
  constexpr int kSteps = 4, kStop = 2;
  Net net(c);
  const SessionOptions options = {.arithmetic = c.arithmetic};
  const int slices = std::max(1, c.shards);
  const optim::Sgd sgd({.learning_rate = 0.02, .momentum = 0.9});
  const auto feeds_of = [&](int step, int count) -> Feeds {
    const CodedTensor pictures(random_codes({count * c.batch, 28, 28, 1}, static_cast<std::uint64_t>(step)), kGrid);
    Tensor labels({count * c.batch}, DType::kInt32);
    for (std::int64_t i = 0; i < labels.elements(); ++i)
      labels.data<std::int32_t>()[i] = static_cast<std::int32_t>(i + step) % 10;
    return {{net.images, bytes ? pictures : CodedTensor(meaning_of(pictures))}, {net.labels, labels}};
  };
  Trained result;
  std::optional<testing::SlicedSession> session;
  for (int step = 0; step < kSteps; ++step) {
    if (step == 0 || step == kStop) {
      const Safetensors content = session ? session->checkpoint() : Safetensors();
      session.emplace(net.graph, slices, 2, options);
      if (step == kStop) session->restore(content, Session::Restore::kExact, "the first session");
    }
    result.losses.push_back(session->train_step(net.loss, sgd, feeds_of(step, slices)));
  }
  result.logits = session->run({.fetches = {net.logits}}, feeds_of(kSteps, 1)).fetched[0];
  result.checkpoint = session->checkpoint().tensors;
  return result;
}

void expect_same_training(const ByteCase& c) {
  const Trained got = trained(c, true), wanted = trained(c, false);
  EXPECT_EQ(got.losses, wanted.losses);
  expect_same_bits(got.logits, wanted.logits, "logits");
  ASSERT_EQ(got.checkpoint.size(), wanted.checkpoint.size());
  for (const auto& [name, tensor] : wanted.checkpoint) expect_same_bits(got.checkpoint.at(name), tensor, name);
}

const std::vector<ByteCase>& cases() {
  using enum Arithmetic;
  static const std::vector<ByteCase> all = {
      {.model = "lenet5", .batch = 8},
      {.model = "odd", .batch = 8},
      // Large enough to rest as bytes between forward and backward.
      {.model = "lenet5", .batch = 96, .rewrite = RewriteOptions{}},
      {.model = "lenet5", .batch = 96, .rewrite = RewriteOptions{.quantize_input = true}, .arithmetic = kInteger},
      {.model = "lenet", .batch = 8, .rewrite = RewriteOptions{.quant_delay = 2}, .arithmetic = kInteger},
      {.model = "lenet5",
       .batch = 96,
       .rewrite =
           RewriteOptions{
               .weight_bits = 4, .activation_bits = 4, .ranges = RangeChoice::kLearned, .quantize_input = true},
       .arithmetic = kInteger},
      {.model = "odd", .batch = 8, .rewrite = RewriteOptions{.quantize_input = true}},
      {.model = "odd", .batch = 128, .rewrite = RewriteOptions{}},
      {.model = "lenet5", .batch = 4, .rewrite = RewriteOptions{.quantize_input = true}, .shards = 4},
      {.model = "lenet5", .batch = 4, .rewrite = RewriteOptions{}, .arithmetic = kInteger, .shards = 2},
  };
  return all;
}

TEST(ByteFeeds, StepsHaveTheBitsOfTheNumbers) {
  for (const ByteCase& c : cases())
    testing::with_thread_counts([&] {
      SCOPED_TRACE(concat(c.model, ", batch ", c.batch, ", ", c.shards, " shards, ", thread_count(), " threads"));
      expect_same_training(c);
    });
}

/// With gradients of the pictures, which come back as a fetch, too.
TEST(ByteFeeds, SoHaveGradientsAndFetchesOfThePlaceholder) {
  for (const bool quantized : {false, true}) {
    const ByteCase c = {.model = "lenet5",
                        .batch = 96,
                        .rewrite = quantized ? std::optional(RewriteOptions{.quantize_input = true}) : std::nullopt};
    Net net(c);
    const CodedTensor bytes(random_codes(net.images.shape(), 1), kGrid);
    const Tensor numbers = meaning_of(bytes), labels({c.batch}, DType::kInt32);
    Session coded(net.graph), plain(net.graph);
    const RunRequest request = {
        .fetches = {net.images}, .gradients_of = net.loss, .gradient_targets = {net.images}, .training = true};
    const RunResult got = coded.run(request, {{net.images, bytes}, {net.labels, labels}});
    const RunResult wanted = plain.run(request, {{net.images, numbers}, {net.labels, labels}});
    expect_same_bits(got.fetched[0], numbers, "the placeholder");
    expect_same_bits(got.gradients[0], wanted.gradients[0], "its gradient");
    // The same session takes numbers, and bytes again.
    for (const CodedTensor& fed : {CodedTensor(numbers), bytes})
      expect_same_bits(coded.run({.fetches = {net.images}}, {{net.images, fed}}).fetched[0], numbers, "again");
  }
}

TEST(ByteFeeds, TheReferenceBackendTakesThemToo) {
  Graph graph;
  const Output x = placeholder(graph, "x", {3, 50});
  const Output y = layers::relu(graph, "y", x);
  const CodedTensor bytes(random_codes(x.shape(), 2), kGrid);
  for (const DType precision : {DType::kFloat32, DType::kFloat64}) {
    Session session(graph, {.backend = Backend::kReference, .precision = precision});
    const auto fetch = [&](const CodedTensor& fed) { return session.run({.fetches = {y}}, {{x, fed}}).fetched[0]; };
    expect_same_bits(fetch(bytes), fetch(meaning_of(bytes)), std::string(name_of(precision)));
  }
}

/// Where a loss is not finite, the step is refused in the same words.
TEST(ByteFeeds, AStepThatFailsNamesTheSameNode) {
  for (const int shards : {0, 2}) {
    const ByteCase c = {.model = "lenet5", .batch = 4, .rewrite = RewriteOptions{}, .shards = shards};
    const auto error = [&](bool bytes) {
      Net net(c);
      const int slices = std::max(1, shards);
      testing::SlicedSession session(net.graph, slices);
      const CodedTensor pictures(random_codes({slices * c.batch, 28, 28, 1}, 3), {3e38f, 0});
      return error_of([&] {
        session.train_step(net.loss, optim::Sgd({}),
                           {{net.images, bytes ? pictures : CodedTensor(meaning_of(pictures))},
                            {net.labels, Tensor({slices * c.batch}, DType::kInt32)}});
      });
    };
    EXPECT_TRUE(mentions(error(true), {"step 1", "\"images\""}));
    EXPECT_EQ(error(true), error(false));
  }
}

const Plan::ForwardStep& step_of(const Plan& plan, const std::string& name) {
  return *std::ranges::find(plan.forward, name, [](const Plan::ForwardStep& step) { return step.node->name(); });
}

/// A quantizer that is the only reader writes over the numbers that it reads.
TEST(ByteFeeds, NumbersHaveNoMemoryOfTheirOwnBesideAQuantizer) {
  Graph graph;
  const Output x = placeholder(graph, "x", {64, 64});
  const Output y = fake_quant(graph, "q", x, {.range = RangeKind::kMovingAverage});
  PlanRequest request = {.fetches = {y}, .training = true};
  const std::size_t plain = compile_plan(graph, request)->memory.arena;
  request.coded = {x};
  const auto plan = compile_plan(graph, request);
  EXPECT_EQ(plan->memory.arena, plain);
  const ForwardContext& context = step_of(*plan, "q").context;
  EXPECT_EQ(context.input(0).raw(), context.output(0).raw());
}

/// Numbers that backward reads wait as bytes.
TEST(ByteFeeds, LargePicturesRestAsBytes) {
  for (const std::int64_t batch : {8, 128}) {
    const Net net({.model = "lenet5", .batch = batch, .rewrite = RewriteOptions{}});
    PlanRequest request = {.fetches = {net.loss},
                           .gradients_of = net.loss,
                           .gradient_targets = {net.graph.at("conv1/weights").output()},
                           .training = true,
                           .coded = {net.images}};
    const auto plan = compile_plan(net.graph, request);
    const auto rests = [&](const Plan::Packed& packed) {
      return std::ranges::find(packed.tensors, plan->placeholders[0].tensor) != packed.tensors.end();
    };
    ASSERT_EQ(plan->placeholders[0].node, net.images.node);
    EXPECT_EQ(std::ranges::any_of(plan->packed, rests), batch == 128);
  }
}

TEST(ByteFeeds, WrongOnesAreRefused) {
  Graph graph;
  const Output x = placeholder(graph, "x", {4, 2});
  const Output n = placeholder(graph, "n", {4}, DType::kInt32);
  const Output w = variable(graph, "w", {2, 3});
  const Output loss = layers::softmax_cross_entropy(graph, layers::matmul(graph, "xw", x, w), n);
  const Tensor codes(x.shape(), DType::kUInt8), labels({4}, DType::kInt32);
  const CodedTensor good(codes, kGrid);
  const auto refuse = [&](const Feeds& feeds, const std::vector<std::string>& parts) {
    Session session(graph);
    EXPECT_TRUE(mentions(error_of([&] { session.train_step(loss, optim::Sgd({}), feeds); }), parts));
    EXPECT_EQ(session.step(), 0);
  };
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  for (const float scale : {0.0f, -1.0f, kInfinity, kNan})
    refuse({{x, {codes, {scale, 0}}}, {n, labels}}, {"[Placeholder \"x\"]", "scale", "positive and finite"});
  for (const float zero_point : {-1.0f, 256.0f, 0.5f, kNan})
    refuse({{x, {codes, {1, zero_point}}}, {n, labels}}, {"[Placeholder \"x\"]", "zero point", "0 to 255"});
  refuse({{x, codes}, {n, labels}}, {"[Placeholder \"x\"]", "float32", "uint8 [4,2]", "scale and a zero point"});
  refuse({{x, {Tensor({4, 3}, DType::kUInt8), kGrid}}, {n, labels}}, {"[Placeholder \"x\"]", "[4,2]", "bytes [4,3]"});
  refuse({{x, {Tensor(x.shape()), kGrid}}, {n, labels}}, {"[Placeholder \"x\"]", "float32 as bytes", "uint8"});
  refuse({{x, {Tensor(), kGrid}}, {n, labels}}, {"[Placeholder \"x\"]", "empty tensor"});
  refuse({{x, good}, {n, {Tensor({4}, DType::kUInt8), kGrid}}}, {"[Placeholder \"n\"]", "int32", "bytes [4]"});
  refuse({{x, good}, {w, {Tensor(w.shape(), DType::kUInt8), kGrid}}, {n, labels}}, {"\"w\"", "not a Placeholder"});
  refuse({{x, good}}, {"[Placeholder \"n\"]", "must be fed"});
  Graph other;
  refuse({{placeholder(other, "x", {4, 2}), good}, {n, labels}}, {"not of this graph"});
  testing::SlicedSession session(graph, 2);
  EXPECT_EQ(error_of([&] { session.run({.fetches = {loss}}, {{x, good}, {n, labels}}); }), "");
  const auto sharded_error = [&](const CodedTensor& pictures) {
    return error_of([&] {
      session.train_step(loss, optim::Sgd({}), {{x, pictures}, {n, Tensor({8}, DType::kInt32)}});
    });
  };
  const Tensor slices({8, 2}, DType::kUInt8);
  EXPECT_EQ(sharded_error({slices, kGrid}), "");
  EXPECT_TRUE(mentions(sharded_error({slices, {1, 300}}), {"[Placeholder \"x\"]", "zero point", "300"}));
  EXPECT_TRUE(mentions(sharded_error(good), {"[Placeholder \"x\"]", "2 slices float32 [4,2]", "bytes [4,2]"}));
  // Of two values the first counts, as ever.
  const Tensor numbers = meaning_of(good);
  for (const Feeds& feeds : {Feeds{{x, good}, {x, numbers}}, Feeds{{x, numbers}, {x, good}}})
    expect_same_bits(session.run({.fetches = {x}}, feeds).fetched[0], numbers, "two values");
}

}  // namespace
}  // namespace miniqat::quantize::byte_feeds_test
