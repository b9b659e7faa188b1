// Slice: a part of the integers.

#include "integer/kernels/slice.h"

#include <gtest/gtest.h>

#include <numeric>

#include "core/parallel.h"
#include "integer/engine.h"
#include "integer/format/model_file.h"
#include "integer/reference/engine.h"
#include "tests/integer/random_model.h"

namespace miniqat::integer::slice_test {
namespace {

using testing::random_images;
using testing::RandomModel;

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

TEST(Slice, TheEngineGivesTheReferencesIntegersAndFilesKeepIt) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const std::int64_t large = seed % 8 == 0 ? 60 : 0;
    RandomModel net(seed, seed % 4 == 3 ? Shape{7} : Shape{5 + large, 9 + large, 1 + static_cast<std::int64_t>(seed)});
    net.slice();
    const Model model = net.finish();
    Random random(seed);
    const Tensor images = random_images(random, model, 1 + static_cast<std::int64_t>(seed % 3));
    const Tensor expected = reference::run(model, images)[1];
    for (const int threads : {1, 2}) {
      set_thread_count(threads);
      Engine engine(model);
      ASSERT_TRUE(std::ranges::equal(engine.run(images).values<std::uint8_t>(), expected.values<std::uint8_t>()))
          << "seed " << seed;
    }
    const std::string bytes = to_bytes(model);
    const Model again = from_bytes(bytes, "bytes");
    EXPECT_EQ(std::get<Slice>(again.operations[0].action).starts, std::get<Slice>(model.operations[0].action).starts);
    EXPECT_EQ(to_bytes(again), bytes);
  }
}

}  // namespace
}  // namespace miniqat::integer::slice_test
