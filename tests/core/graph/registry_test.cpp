#include "core/graph/registry.h"

#include <gtest/gtest.h>

#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "core/graph/op.h"
#include "core/graph/source_ops.h"

namespace miniqat::registry_test {
namespace {

// Whoever reads a first network registers the ops, while other threads look theirs up.
TEST(Registry, ThreadsRegisterAndLookUpAtOnce) {
  constexpr int kThreads = 4, kTypes = 2000;
  const std::size_t before = registered_ops().size();
  const auto name = [](int thread, int type) {
    return "ThreadsRegister" + std::to_string(type) + "/" + std::to_string(thread);
  };
  std::latch start(kThreads);
  std::vector<int> made(kThreads, 0);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      start.arrive_and_wait();
      for (int type = 0; type < kTypes; ++type) {
        register_op(name(thread, type), [] { return Constant::make(); });
        made[static_cast<std::size_t>(thread)] += make_op(name(thread, type))->type() == Constant::kType ? 1 : 0;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, std::vector<int>(kThreads, kTypes));
  EXPECT_EQ(registered_ops().size(), before + kThreads * kTypes);
}

}  // namespace
}  // namespace miniqat::registry_test
