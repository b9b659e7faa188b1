// The C that is generated, compiled for a Cortex-M4 and a 32-bit RISC-V and run on the boards that QEMU emulates.

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "tests/exporters/c/board.h"
#include "tests/exporters/c/sounds.h"
#include "tests/fewer_cases.h"
#include "tests/integer/random_model.h"

namespace miniqat::exporters::emulated_test {
namespace {

using integer::Model;
using testing::Board;
using testing::BoardTarget;
using testing::kBoardTargets;
using testing::RandomModel;

class Emulated : public ::testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    const std::string missing = testing::missing_tools(target());
    if (!missing.empty()) GTEST_SKIP() << "no " << missing << "; scripts/install-deps --ci installs what is missing";
  }
  const BoardTarget& target() const { return kBoardTargets[GetParam()]; }
};

TEST_P(Emulated, GivesTheIntegersOfTheReference) {
  Board board;
  for (const int bits : {8, 4, 2})
    board.add("w" + std::to_string(bits), testing::random_network(20 + bits, {.only_bits = bits}));
  board.add("any", testing::random_network(5));
  RandomModel lookup(6, {6, 5, 3});
  lookup.conv2d(1);
  lookup.lookup();
  lookup.mul(lookup.last(), lookup.last());
  board.add("single", lookup.finish());

  board.expect_integers(target(), "-DW4_WEIGHTS_SECTION='__attribute__((section(\".weights\")))'");
}

/// Integers with their zero point and scale instead of a class.
TEST_P(Emulated, GivesNumbersOfOtherTasks) {
  Board board;
  for (const char* task : {"regress", "reconstruct", "multilabel"}) {
    RandomModel net(9 + task[0], {6, 4});
    net.reshape({24});
    net.fully_connected(8);
    net.fully_connected(std::string(task) == "reconstruct" ? 24 : 3);
    Model model = net.finish();
    model.task = task;
    board.add(task, model);
  }
  board.expect_integers(target());
}

TEST_P(Emulated, GoesFromSamplesToAClass) {
  Board board;
  for (const auto& [name, options] : testing::kSounds) board.add(name, testing::sound_model(options), options);
  const auto results = board.expect_integers(target());
  for (const auto& [prefix, exported] : board.models()) {
    ASSERT_TRUE(results.contains(prefix));
    std::printf("%s %s: %ld instructions from %ld samples to a class\n", target().name.c_str(), prefix.c_str(),
                results.at(prefix).at(1), static_cast<long>(exported.front_end->samples()));
    EXPECT_EQ(board.float_calls(target(), prefix), "none\n") << "floating point is not there";
  }
}

/// The weights of a filter are unpacked once, not for each row of the output: some instructions for each
/// multiplication.
TEST_P(Emulated, FewInstructions) {
  Board board;
  for (const int bits : {8, 4, 2}) {
    RandomModel net(3, {96, 3, 8}, {.only_bits = bits, .plain_windows = true});
    net.conv2d(16);
    board.add("w" + std::to_string(bits), net.finish());
  }
  constexpr double kMost = 7;
  const auto results = board.run(target());
  ASSERT_EQ(results.size(), board.models().size());
  for (const auto& [prefix, exported] : board.models()) {
    const double each = static_cast<double>(results.at(prefix).at(1)) / exported.model.multiply_adds();
    std::printf("%s %s: %.2f instructions for each of %ld multiply-adds\n", target().name.c_str(), prefix.c_str(), each,
                static_cast<long>(exported.model.multiply_adds()));
    EXPECT_GT(each, 1) << prefix;
    EXPECT_LT(each, kMost) << prefix;
  }
}

TEST_P(Emulated, MemoryIsAsStated) {
  Board board;
  board.add("all", testing::random_network(7));
  RandomModel curve(8, {6, 5, 3});
  curve.lookup();
  curve.mul(curve.last(), curve.last());
  Model numbers = curve.finish();
  numbers.input_standard = Standard{.mean = {1, 2, 3}, .deviation = {4, 5, 6}};
  board.add("curve", numbers);
  for (const auto& [name, options] : testing::kSounds) board.add(name, testing::sound_model(options), options);
  for (const auto& [prefix, exported] : board.models()) {
    const CFootprint stated = exported.footprint, found = board.compiled(target(), prefix);
    EXPECT_EQ(found.weights, stated.weights) << prefix;
    EXPECT_EQ(found.constants, stated.constants) << prefix;
    EXPECT_EQ(found.arena, stated.arena) << prefix;
    EXPECT_EQ(found.scratch, stated.scratch) << prefix;
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Emulated,
                         ::testing::Range<std::size_t>(0, testing::tries_all_cases() ? kBoardTargets.size() : 1),
                         [](const auto& info) { return std::string(info.param == 0 ? "CortexM4" : "Rv32imac"); });

}  // namespace
}  // namespace miniqat::exporters::emulated_test
