#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <thread>
#include <vector>

#include "core/engine/session.h"
#include "core/threads/parallel.h"
#include "layers/layers.h"
#include "optim/adam.h"
#include "tests/layers/op_runner.h"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace miniqat::session_threads_test {
namespace {

using testing::random_tensor;

/// A small network of its own for each number: convolutions (ours and oneDNN's, one strided 1x1), batch norm, a
/// product.
std::vector<float> trained(std::int64_t number) {
  Graph graph;
  const std::int64_t batch = 4 + number, channels = 8 + 8 * number;
  const Output x = placeholder(graph, "x", {batch, 12, 12, 3});
  const Output labels = placeholder(graph, "labels", {batch}, DType::kInt32);
  const auto filter = [&](const char* name, const Shape& shape) { return variable(graph, name, shape); };
  Output y = layers::conv2d(graph, "conv1", x, filter("w1", {3, 3, 3, channels}));
  y = layers::relu(graph, "relu1", y);
  y = layers::conv2d(graph, "conv2", y, filter("w2", {1, 1, channels, 16}), {.strides = {2, 2}});
  y = layers::depthwise_conv2d(graph, "conv3", y, filter("w3", {3, 3, 16, 1}));
  y = layers::reshape(graph, "flat", y, {.shape = {batch, 6 * 6 * 16}});
  y = layers::matmul(graph, "logits", y, filter("w4", {6 * 6 * 16, 5}));
  const Output loss = layers::softmax_cross_entropy(graph, y, labels);
  Session session(graph, {.seed = static_cast<std::uint64_t>(number) + 1});
  const optim::Adam adam({.learning_rate = 0.01});
  const Tensor images = random_tensor({batch, 12, 12, 3}, number);
  Tensor classes(Shape{batch}, DType::kInt32);
  for (std::int64_t i = 0; i < batch; ++i) classes.data<std::int32_t>()[i] = static_cast<std::int32_t>(i % 5);
  std::vector<float> result;
  for (int step = 0; step < 12; ++step)
    result.push_back(session.train_step(loss, adam, {{x, images}, {labels, classes}}));
  for (const auto& [name, value] : session.variables())
    for (const float element : value.values<float>()) result.push_back(element);
  return result;
}

class SessionThreadsTest : public ::testing::Test {
 protected:
  void TearDown() override { set_thread_count(before_); }

 private:
  int before_ = thread_count();
};

TEST_F(SessionThreadsTest, SessionsInSeveralThreadsGiveTheBitsOfOneAfterTheOther) {
  for (const int threads : {1, 2}) {
    set_thread_count(threads);
    constexpr std::int64_t kSessions = 3;
    std::vector<std::vector<float>> alone, together(kSessions);
    for (std::int64_t i = 0; i < kSessions; ++i) alone.push_back(trained(i));
    for (int round = 0; round < 3; ++round) {
      std::vector<std::thread> running;
      for (std::int64_t i = 0; i < kSessions; ++i) running.emplace_back([&, i] { together[i] = trained(i); });
      for (std::thread& thread : running) thread.join();
      for (std::int64_t i = 0; i < kSessions; ++i) EXPECT_TRUE(together[i] == alone[i]) << "session " << i;
    }
  }
}

// One session may also go from thread to thread.
TEST_F(SessionThreadsTest, ASessionMayBeUsedByOneThreadAfterTheOther) {
  Graph graph;
  const Output x = placeholder(graph, "x", {4, 9, 9, 8});
  const Output y = layers::conv2d(graph, "conv", x, variable(graph, "w", {3, 3, 8, 32}));
  Session session(graph);
  const Feeds feeds = {{x, random_tensor({4, 9, 9, 8}, 1)}};
  const Tensor here = session.run({.fetches = {y}}, feeds).fetched[0];
  Tensor there;
  std::thread([&] { there = session.run({.fetches = {y}}, feeds).fetched[0]; }).join();
  EXPECT_TRUE(std::ranges::equal(here.values<float>(), there.values<float>()));
}

#if defined(__SSE__)

TEST_F(SessionThreadsTest, TheCallersDenormalSwitchesStayAndDenormalsAreFlushedInside) {
  constexpr unsigned kFlushBits = 0x8040;
  const unsigned before = _mm_getcsr();
  for (const unsigned mode : {before & ~kFlushBits, before | kFlushBits, (before & ~kFlushBits) | 0x8000}) {
    _mm_setcsr(mode);
    Graph graph;
    const Output x = placeholder(graph, "x", {2});
    const Output w = variable(graph, "w", {2}, Initializer::constant(0.5));
    const Output y = layers::mul(graph, "y", x, w);
    const Output loss = layers::mean(graph, "loss", y, {.axes = {0}});
    Session session(graph);
    // Half of what is just no denormal is one.
    const Feeds feeds = {{x, Tensor::from<float>({2}, {1.5f * std::numeric_limits<float>::min(), 1})}};
    const Tensor fetched = session.run({.fetches = {y}}, feeds).fetched[0];
    session.train_step(loss, optim::Adam({}), feeds);
    const unsigned after = _mm_getcsr();
    _mm_setcsr(before);
    EXPECT_EQ(after & kFlushBits, mode & kFlushBits);
    EXPECT_EQ(fetched.data<float>()[0], 0.0f);
    EXPECT_EQ(fetched.data<float>()[1], 0.5f);
  }
}

#endif

}  // namespace
}  // namespace miniqat::session_threads_test
