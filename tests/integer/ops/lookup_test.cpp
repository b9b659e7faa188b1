// Lookup: a table in place of an elementwise function.

#include <gtest/gtest.h>

#include <functional>

#include "integer/engine.h"
#include "integer/format/model_file.h"
#include "integer/reference/engine.h"
#include "tests/errors.h"
#include "tests/integer/random_model.h"

namespace miniqat::integer::lookup_test {
namespace {

using testing::error_of;
using testing::mentions;
using testing::random_images;
using testing::RandomModel;

Model lookup_model(std::uint64_t seed, const Shape& shape) {
  RandomModel net(seed, shape);
  net.rescale();
  net.lookup();
  return net.finish();
}

Lookup& lookup_of(Model& model) { return std::get<Lookup>(model.operations.back().action); }

TEST(Lookup, TheReferenceTakesTheTablesIntegers) {
  const Model model = lookup_model(5, {200});
  const auto& table = std::get<Lookup>(model.operations.back().action).table;
  Random random(5);
  const std::vector<Tensor> tensors = reference::run(model, random_images(random, model, 2));
  const auto x = tensors[1].values<std::uint8_t>(), y = tensors[2].values<std::uint8_t>();
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], table[x[i]]);
}

/// No model makes such a number, but a picture may hold one.
TEST(Lookup, AnIntegerBeyondTheGridCountsAsItsLast) {
  Model model{.name = "four"};
  model.tensors = {{.name = "x", .shape = {6}, .grid = {.bits = 2}}, {.name = "y", .shape = {6}, .grid = {}}};
  model.operations = {
      {.name = "f", .action = Lookup{.function = "f", .table = {9, 8, 7, 6}}, .inputs = {0}, .output = 1}};
  model.output = 1;
  Tensor images({1, 6}, DType::kUInt8);
  std::ranges::copy(std::vector<std::uint8_t>{0, 3, 1, 4, 200, 255}, images.data<std::uint8_t>());
  const std::vector<std::uint8_t> expected = {9, 6, 8, 6, 6, 6};
  EXPECT_TRUE(std::ranges::equal(reference::run(model, images)[1].values<std::uint8_t>(), expected));
  Engine engine(model);
  EXPECT_TRUE(std::ranges::equal(engine.run(images).values<std::uint8_t>(), expected));
}

TEST(Lookup, FilesKeepFunctionAndTable) {
  const Model model = lookup_model(3, {5});
  const std::string bytes = to_bytes(model);
  Model again = from_bytes(bytes, "bytes");
  EXPECT_EQ(lookup_of(again).function, "noise");
  EXPECT_EQ(lookup_of(again).table, std::get<Lookup>(model.operations.back().action).table);
}

TEST(Lookup, TablesFitTheirGrids) {
  const auto complaint = [](const std::function<void(Operation&, Lookup&)>& spoil) {
    Model model = lookup_model(2, {5});
    spoil(model.operations.back(), lookup_of(model));
    return error_of([&] { model.check(); });
  };
  EXPECT_EQ(complaint([](Operation&, Lookup&) {}), "");
  EXPECT_TRUE(
      mentions(complaint([](Operation&, Lookup& l) { l.table.push_back(0); }), {"[Lookup \"Lookup_1\"]", "table of"}));
  EXPECT_TRUE(mentions(complaint([](Operation&, Lookup& l) { l.table.clear(); }), {"has a table of 0 for"}));
  EXPECT_TRUE(mentions(complaint([](Operation& o, Lookup& l) {
                         o.clamp = {.min = 1, .max = 2};
                         std::ranges::fill(l.table, std::uint8_t{2});
                         l.table[1] = 3;
                       }),
                       {"a table with 3, which is beyond its clamp"}));
  for (const char* bad : {"", "two\nlines"})
    EXPECT_TRUE(mentions(complaint([&](Operation&, Lookup& l) { l.function = bad; }), {"printable ASCII"}));
  EXPECT_TRUE(mentions(complaint([](Operation& o, Lookup&) { o.inputs = {0, 1}; }), {"takes 1 input, not 2"}));
}

}  // namespace
}  // namespace miniqat::integer::lookup_test
