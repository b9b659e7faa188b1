// Operations that move integers: Slice, Pad, Concat.

#include <gtest/gtest.h>

#include <numeric>

#include "core/text/error.h"
#include "integer/engine.h"
#include "integer/reference/engine.h"
#include "tests/integer/random_model.h"
#include "tests/thread_counts.h"

namespace miniqat::integer::index_map_test {
namespace {

using testing::random_images;

TEST(Slice, TheReferenceKeepsWhatItNames) {
  Model model{.name = "part"};
  model.tensors = {{.name = "x", .shape = {3, 2, 4}, .grid = {}}, {.name = "y", .shape = {2, 2, 2}, .grid = {}}};
  model.operations = {
      {.name = "s", .action = Slice{.starts = {0, 0, 1}, .steps = {2, 1, 2}}, .inputs = {0}, .output = 1}};
  model.operations[0].clamp = {.min = 0, .max = 255};
  model.output = 1;
  model.check();
  Tensor images({2, 3, 2, 4}, DType::kUInt8);
  const auto x = images.values<std::uint8_t>();
  std::iota(x.begin(), x.end(), std::uint8_t{0});
  const std::vector<std::uint8_t> expected = {1, 3, 5, 7, 17, 19, 21, 23, 25, 27, 29, 31, 41, 43, 45, 47};
  EXPECT_TRUE(std::ranges::equal(reference::run(model, images)[1].values<std::uint8_t>(), expected));
}

/// A model of x alone, which grows.
struct Moves {
  Model model{.name = "moves"};
  Random random;

  explicit Moves(std::uint64_t seed) : random(seed) {
    std::vector<std::int64_t> extents(random.below(5));
    for (std::int64_t& extent : extents) extent = below(seed % 16 == 0 ? 40 : 5) + 1;
    model.tensors = {{.name = "x", .shape = Shape(extents), .grid = {.scale = 1, .zero_point = 3}}};
  }

  std::int64_t below(std::int64_t count) {
    return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(count)));
  }
  std::vector<std::int64_t> extents() const { return model.tensors.back().shape.to_vector(); }
  void append(Action action, std::vector<int> inputs, const std::vector<std::int64_t>& extents, Grid grid) {
    const int made = static_cast<int>(model.tensors.size());
    model.tensors.push_back({.name = concat("t", made), .shape = Shape(extents), .grid = grid});
    model.operations.push_back(
        {.name = concat("o", made), .action = std::move(action), .inputs = std::move(inputs), .output = made});
    model.output = made;
  }

  /// Borders of any axis.
  void pad() {
    std::vector<std::int64_t> to = extents();
    Pad pad;
    for (std::int64_t& extent : to) {
      const bool bordered = below(2) == 0;
      pad.paddings.push_back({bordered ? below(3) : 0, bordered ? below(3) : 0});
      extent += pad.paddings.back()[0] + pad.paddings.back()[1];
    }
    append(std::move(pad), {model.output}, to, model.tensors.back().grid);
  }
  void slice() {
    std::vector<std::int64_t> to = extents();
    Slice slice;
    for (std::int64_t& extent : to) {
      slice.starts.push_back(below(2) == 0 ? 0 : below(extent));
      slice.steps.push_back(below(2) == 0 ? 1 : 1 + below(4));
      extent = (extent - 1 - slice.starts.back()) / slice.steps.back() + 1;
    }
    append(std::move(slice), {model.output}, to, model.tensors.back().grid);
  }
  /// Along any axis; the second input is a part of the first.
  void concat_along_an_axis() {
    std::vector<std::int64_t> to = extents();
    if (to.empty()) return;
    const int all = model.output;
    const auto axis = static_cast<std::size_t>(below(std::ssize(to)));
    std::vector<std::int64_t> part = to;
    part[axis] = 1 + below(part[axis]);
    append(Slice{.starts = std::vector<std::int64_t>(to.size(), 0), .steps = std::vector<std::int64_t>(to.size(), 1)},
           {all}, part, model.tensors.back().grid);
    to[axis] = 2 * to[axis] + part[axis];
    append(Concat{.axis = static_cast<int>(axis),
                  .multipliers = {multiplier_for(0.7), multiplier_for(1), multiplier_for(0.4)}},
           {all, all + 1, all}, to, {.scale = 1, .zero_point = 3});
  }
};

TEST(IndexMap, TheEngineMovesAsTheReferenceDoes) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Moves moves(seed);
    for (int i = 0; i < 3; ++i) {
      const std::int64_t kind = moves.below(3);
      if (kind == 0) moves.pad();
      if (kind == 1) moves.slice();
      if (kind == 2) moves.concat_along_an_axis();
    }
    moves.model.check();
    const Tensor images = random_images(moves.random, moves.model, 1 + moves.below(3));
    const Tensor expected = reference::run(moves.model, images)[moves.model.output];
    testing::with_thread_counts([&] {
      Engine engine(moves.model);
      ASSERT_TRUE(std::ranges::equal(engine.run(images).values<std::uint8_t>(), expected.values<std::uint8_t>()))
          << "seed " << seed;
    });
    if (HasFatalFailure()) return;
  }
}

/// Row-major, whichever the axis; the second on another grid.
TEST(IndexMap, TheReferenceJoinsAlongAnyAxis) {
  Model model{.name = "join"};
  const Grid grid = {};
  model.tensors = {{.name = "x", .shape = {2, 2}, .grid = grid}, {.name = "y", .shape = {4, 2}, .grid = grid}};
  model.operations = {{.name = "c",
                       .action = Concat{.axis = 0, .multipliers = {multiplier_for(1), multiplier_for(0.5)}},
                       .inputs = {0, 0},
                       .output = 1}};
  model.output = 1;
  const Tensor x = Tensor::from<std::uint8_t>({2, 2, 2}, std::vector<std::uint8_t>{2, 4, 6, 8, 10, 20, 30, 40});
  const auto joined = [&] {
    model.check();
    const Tensor y = reference::run(model, x)[1];
    return std::vector<std::uint8_t>(y.values<std::uint8_t>().begin(), y.values<std::uint8_t>().end());
  };
  EXPECT_EQ(joined(), (std::vector<std::uint8_t>{2, 4, 6, 8, 1, 2, 3, 4, 10, 20, 30, 40, 5, 10, 15, 20}));
  model.tensors[1].shape = {2, 4};
  std::get<Concat>(model.operations[0].action).axis = 1;
  EXPECT_EQ(joined(), (std::vector<std::uint8_t>{2, 4, 1, 2, 6, 8, 3, 4, 10, 20, 5, 10, 30, 40, 15, 20}));
}

}  // namespace
}  // namespace miniqat::integer::index_map_test
