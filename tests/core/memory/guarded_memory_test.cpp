#include "core/memory/guarded_memory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "core/engine/session.h"
#include "core/graph/op.h"
#include "core/graph/source_ops.h"
#include "core/kernels/scratch.h"
#include "core/threads/parallel.h"

namespace miniqat::guarded_memory_test {
namespace {

/// y = x, and as broken as told: writes one more float where it should not.
struct BrokenAttributes {
  /// In floats from the begin of the output (of d_x in backward); none when negative, but for -1.
  std::int64_t forward_place = -2;
  std::int64_t backward_place = -2;
};

class BrokenOp final : public Op {
 public:
  explicit BrokenOp(const BrokenAttributes& attributes) : attributes_(attributes) {}
  std::string_view type() const override { return "Broken"; }
  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override { return {inputs[0]}; }
  void forward(const ForwardContext& context) const override {
    copy(context.input(0), context.output(0), attributes_.forward_place);
  }
  void backward(const BackwardContext& context) const override {
    copy(*context.d_outputs[0], *context.d_inputs[0], attributes_.backward_place);
  }
  void reference_forward(const ForwardContext& context) const override { forward(context); }

 private:
  static void copy(const Tensor& from, Tensor& to, std::int64_t place) {
    to.assign(from);
    if (place >= -1) const_cast<volatile float*>(to.data<float>())[place] = 1;
  }

  BrokenAttributes attributes_;
};

/// Runs a sound node and a node "net/broken" on x [n].
void run_broken(std::int64_t n, const BrokenAttributes& attributes) {
  Graph graph;
  const Output x = placeholder(graph, "x", {n});
  const Output sound = graph.add("net/sound", std::make_unique<BrokenOp>(BrokenAttributes{}), {x}).output();
  const Output y = graph.add("net/broken", std::make_unique<BrokenOp>(attributes), {sound}).output();
  Session session(graph);
  session.run({.fetches = {y}, .gradients_of = y, .gradient_targets = {x}}, {{x, Tensor(Shape{n})}});
}

/// The mode is read once in a process: each test runs its statement in a fresh one.
class GuardedMemoryTest : public ::testing::Test {
 protected:
  GuardedMemoryTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  void SetUp() override {
    if (const char* mode = std::getenv("MINIQAT_GUARD")) before_ = mode;
  }
  void TearDown() override {
    before_.empty() ? ::unsetenv("MINIQAT_GUARD") : ::setenv("MINIQAT_GUARD", before_.c_str(), 1);
  }
  static void ask_for(const char* mode) { ::setenv("MINIQAT_GUARD", mode, 1); }

 private:
  std::string before_;
};

constexpr BrokenAttributes kSound = {};

TEST_F(GuardedMemoryTest, AWriteIntoTheGuardPagesStopsTheNodeThatDidIt) {
  ask_for("after");
  EXPECT_EXIT(
      run_broken(16, {.forward_place = 16}), ::testing::KilledBySignal(SIGSEGV),
      "touched 0 bytes after the end of a buffer of 64 bytes, in or since \\[Broken \"net/broken\"\\] .forward");
  EXPECT_EXIT(run_broken(16, {.forward_place = 16000}), ::testing::KilledBySignal(SIGSEGV),
              "touched 63936 bytes after the end of a buffer of 64 bytes");
  EXPECT_EXIT(
      run_broken(16, {.backward_place = 16}), ::testing::KilledBySignal(SIGSEGV),
      "touched 0 bytes after the end of a buffer of 64 bytes, in or since \\[Broken \"net/broken\"\\] .backward");
  ask_for("before");
  EXPECT_EXIT(run_broken(3, {.forward_place = -1}), ::testing::KilledBySignal(SIGSEGV),
              "touched 4 bytes before the begin of a buffer of 12 bytes, in or since \\[Broken \"net/broken\"\\]");
}

TEST_F(GuardedMemoryTest, AWriteIntoTheSlackStopsTheNodeThatDidIt) {
  ask_for("after");
  EXPECT_EXIT(run_broken(3, {.forward_place = 3}), ::testing::KilledBySignal(SIGABRT),
              "overwritten 0 bytes after the end of a buffer of 12 bytes, in or since \\[Broken \"net/broken\"\\]");
  EXPECT_EXIT(run_broken(3, {.backward_place = 15}), ::testing::KilledBySignal(SIGABRT),
              "overwritten 48 bytes after the end of a buffer of 12 bytes, in or since \\[Broken \"net/broken\"\\]");
  EXPECT_EXIT(run_broken(3, {.forward_place = -1}), ::testing::KilledBySignal(SIGABRT),
              "overwritten 4 bytes before the begin of a buffer of 12 bytes");
  ask_for("before");
  EXPECT_EXIT(run_broken(16, {.forward_place = 16}), ::testing::KilledBySignal(SIGABRT),
              "overwritten 0 bytes after the end of a buffer of 64 bytes");
}

TEST_F(GuardedMemoryTest, ASoundRunPasses) {
  for (const char* mode : {"after", "before"}) {
    ask_for(mode);
    EXPECT_EXIT((run_broken(16, kSound), run_broken(3, kSound), std::_Exit(is_guarding() ? 0 : 1)),
                ::testing::ExitedWithCode(0), "");
  }
}

/// More buffers than are checked after each step.
struct ManyBuffers {
  static constexpr int kCount = 3000;
  ManyBuffers() {
    for (int i = 0; i < kCount; ++i) tensors.emplace_back(Shape{3});
    // From here on none of them is new.
    const GuardedStep step([] { return "the first step"; });
  }
  void damage_one() const { const_cast<volatile float*>(tensors[500].data<float>())[3] = 1; }

  std::vector<Tensor> tensors;
};

TEST_F(GuardedMemoryTest, AmongManyBuffersTheNodeIsStoppedThatDidIt) {
  for (const char* mode : {"after", "before"}) {
    ask_for(mode);
    EXPECT_EXIT(
        {
          const ManyBuffers many;
          run_broken(3, {.forward_place = 3});
        },
        ::testing::KilledBySignal(SIGABRT), "in or since \\[Broken \"net/broken\"\\] .forward");
    EXPECT_EXIT(
        {
          const ManyBuffers many;
          run_broken(3, {.backward_place = 3});
        },
        ::testing::KilledBySignal(SIGABRT), "in or since \\[Broken \"net/broken\"\\] .backward");
  }
}

TEST_F(GuardedMemoryTest, DamageFromAfarIsNoticedAtTheEndOfTheRun) {
  ask_for("after");
  EXPECT_EXIT(
      {
        const ManyBuffers many;
        many.damage_one();
        run_broken(3, kSound);
        std::_Exit(0);
      },
      ::testing::KilledBySignal(SIGABRT),
      "overwritten 0 bytes after the end of a buffer of 12 bytes, noticed after \\[Broken \"net/sound\"\\] .backward");
}

TEST_F(GuardedMemoryTest, AllBuffersHaveTheirTurn) {
  ask_for("after");
  EXPECT_EXIT(
      {
        const ManyBuffers many;
        many.damage_one();
        for (int i = 0; i < ManyBuffers::kCount / 60; ++i) const GuardedStep step([] { return "some step"; });
        std::_Exit(0);
      },
      ::testing::KilledBySignal(SIGABRT), "12 bytes, noticed after some step");
}

// Each step once checked all memory: 5,100 biases did not end in ten minutes.
TEST_F(GuardedMemoryTest, AStepCostsTheSameWhateverMemoryThereIs) {
  ask_for("after");
  EXPECT_EXIT(
      {
        const ManyBuffers many;
        constexpr int kSteps = 100;
        const std::int64_t before = guarded_checks();
        for (int i = 0; i < kSteps; ++i) const GuardedStep step([] { return "some step"; });
        const std::int64_t checks = guarded_checks() - before;
        std::_Exit(checks > 10 * kSteps && checks < 100 * kSteps ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

// Of workers, too, whose scratch memory is their own.
void overrun_scratch_in_a_worker() {
  set_thread_count(2);
  const GuardedStep step([] { return "the loop"; });
  parallel_for(2, 1, [](std::int64_t begin, std::int64_t) {
    ScratchScope scope;
    volatile float* memory = scope.take<float>(1).data();
    if (begin == 1) memory[5] = 1;
  });
}

void read_scratch_unwritten() {
  ScratchScope scope;
  std::_Exit(std::isnan(scope.take<float>(100)[99]) ? 0 : 1);
}

TEST_F(GuardedMemoryTest, ScratchMemoryIsGuardedAndHoldsNaNs) {
  for (const char* mode : {"after", "before"}) {
    ask_for(mode);
    EXPECT_EXIT(overrun_scratch_in_a_worker(), ::testing::KilledBySignal(SIGABRT),
                "overwritten 16 bytes after the end of a buffer of 4 bytes, in or since the loop");
    EXPECT_EXIT(read_scratch_unwritten(), ::testing::ExitedWithCode(0), "");
  }
}

void touch_a_page() {
  auto* memory = static_cast<volatile std::byte*>(allocate_guarded(64));
  memory[64] = std::byte{1};
}

/// Calls `fault` in a step of its own or in none, while another thread is in the middle of a step.
void beside_another_session(bool in_a_step, void (*fault)()) {
  std::atomic<bool> begun = false;
  std::thread other([&] {
    const GuardedStep step([] { return "the other's step"; });
    begun = true;
    while (true) std::this_thread::yield();
  });
  while (!begun) std::this_thread::yield();
  if (!in_a_step) fault();
  const GuardedStep step([] { return "a step of mine"; });
  fault();
  other.join();
}

TEST_F(GuardedMemoryTest, OfTwoSessionsTheOneIsNamedThatDidIt) {
  ask_for("after");
  EXPECT_EXIT(beside_another_session(true, touch_a_page), ::testing::KilledBySignal(SIGSEGV),
              "touched 0 bytes after the end of a buffer of 64 bytes, in or since a step of mine\n");
}

TEST_F(GuardedMemoryTest, WhoIsInNoStepNamesThoseThatRun) {
  ask_for("after");
  EXPECT_EXIT(beside_another_session(false, touch_a_page), ::testing::KilledBySignal(SIGSEGV),
              "in or since the other's step\n");
}

void read_memory_given_back() {
  volatile float* memory = nullptr;
  {
    ScratchScope scope;
    memory = scope.take<float>(16).data();
  }
  memory[0] = 1;
}

TEST_F(GuardedMemoryTest, MemoryThatWasGivenBackCannotBeTouched) {
  ask_for("after");
  EXPECT_EXIT(read_memory_given_back(), ::testing::KilledBySignal(SIGSEGV), "touched memory that is not a buffer");
}

TEST_F(GuardedMemoryTest, MemoryIsAlignedAndZero) {
  for (const char* mode : {"after", "before"}) {
    ask_for(mode);
    EXPECT_EXIT(
        {
          bool good = true;
          for (const std::size_t bytes : {0, 1, 63, 64, 65, 4095, 4096, 4097, 100'000}) {
            auto* memory = static_cast<unsigned char*>(allocate_guarded(bytes));
            good = good && reinterpret_cast<std::uintptr_t>(memory) % 64 == 0;
            for (std::size_t i = 0; i < bytes; ++i) good = good && memory[i] == 0;
            std::memset(memory, 7, bytes);
            release_guarded(memory);
          }
          std::_Exit(good ? 0 : 1);
        },
        ::testing::ExitedWithCode(0), "");
  }
}

TEST_F(GuardedMemoryTest, OtherModesAreRefused) {
  ask_for("sideways");
  EXPECT_EXIT(
      {
        try {
          Tensor tensor(Shape{1});
        } catch (const Error& error) {
          std::_Exit(std::string_view(error.what()) == "MINIQAT_GUARD must be after or before, is \"sideways\"" ? 3
                                                                                                                : 1);
        }
      },
      ::testing::ExitedWithCode(3), "");
}

}  // namespace
}  // namespace miniqat::guarded_memory_test
