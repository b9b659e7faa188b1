#include "core/tensors/tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include "core/memory/guarded_memory.h"
#include "tests/errors.h"

namespace miniqat::tensor_test {
namespace {

using testing::error_of;
using testing::mentions;

std::vector<float> floats(const Tensor& tensor) {
  const auto values = tensor.values<float>();
  return {values.begin(), values.end()};
}

TEST(DTypeTest, NamesAndSizesGoBothWays) {
  for (const DType dtype :
       {DType::kFloat32, DType::kFloat64, DType::kInt64, DType::kInt32, DType::kInt8, DType::kUInt8})
    EXPECT_EQ(dtype_from_name(name_of(dtype)), dtype);
  EXPECT_EQ(byte_size(DType::kFloat32), 4u);
  EXPECT_EQ(byte_size(DType::kInt64), 8u);
  EXPECT_EQ(byte_size(DType::kUInt8), 1u);
  EXPECT_TRUE(mentions(error_of([] { dtype_from_name("float23"); }), {"\"float23\"", "float32"}));
}

TEST(TensorTest, StartsAlignedAndZeroed) {
  for (const std::int64_t extent : {1, 15, 16, 17, 1000}) {
    const Tensor tensor(Shape{extent});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.raw()) % Tensor::kAlignment, 0u);
    EXPECT_TRUE(std::ranges::all_of(tensor.values<float>(), [](float value) { return value == 0; }));
  }
}

/// The flags of the mapping that holds the address ("rd wr mr mw me ac hg"); empty where the system does not say.
std::string mapping_flags(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  bool is_inside = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    char dash = 0;
    if (std::istringstream header(line); header >> std::hex >> begin >> dash >> end && dash == '-')
      is_inside = begin <= reinterpret_cast<std::uintptr_t>(address) && reinterpret_cast<std::uintptr_t>(address) < end;
    else if (is_inside && line.starts_with("VmFlags:"))
      return line.substr(8);
  }
  return {};
}

TEST(TensorTest, ALargeOneAsksForLargePages) {
  if (is_guarding()) GTEST_SKIP() << "guarded memory has pages of its own";
  const auto elements = static_cast<std::int64_t>(kLargePage / sizeof(float)) + 5;
  const Tensor tensor(Shape{elements});
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.raw()) % kLargePage, 0u);
  EXPECT_TRUE(std::ranges::all_of(tensor.values<float>(), [](float value) { return value == 0; }));
  if (!std::filesystem::exists("/sys/kernel/mm/transparent_hugepage")) GTEST_SKIP() << "this kernel has no large pages";
  EXPECT_NE(mapping_flags(tensor.raw()).find(" hg"), std::string::npos);
}

TEST(TensorTest, ADefaultMadeOneHoldsNothing) {
  EXPECT_FALSE(Tensor().defined());
  EXPECT_TRUE(Tensor(Shape{}).defined());
  EXPECT_FALSE(Tensor().clone().defined());
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) EXPECT_FALSE(Tensor().to(dtype).defined());
  Tensor scalar(Shape{}), nothing;
  EXPECT_TRUE(mentions(error_of([&] { scalar.assign(nothing); }), {"cannot assign", "holds nothing"}));
  EXPECT_TRUE(mentions(error_of([&] { nothing.assign(scalar); }), {"cannot assign", "holds nothing"}));
}

TEST(TensorTest, AnEmptyShapeHasNoElementsButIsDefined) {
  const Tensor empty(Shape{0, 3});
  EXPECT_TRUE(empty.defined());
  EXPECT_EQ(empty.bytes(), 0u);
  EXPECT_EQ(empty.clone().elements(), 0);
  EXPECT_EQ(empty.to(DType::kFloat64).elements(), 0);
}

TEST(TensorTest, FromWantsAsManyValuesAsTheShapeHasElements) {
  EXPECT_EQ(floats(Tensor::from<float>({2, 2}, {1, 2, 3, 4})), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_TRUE(mentions(error_of([] { Tensor::from<float>({2, 2}, {1, 2, 3}); }), {"[2,2]", "4 values", "got 3"}));
  EXPECT_TRUE(mentions(error_of([] { Tensor::from<float>({2}, {1, 2, 3}); }), {"2 values", "got 3"}));
}

TEST(TensorTest, ASliceSharesItsElements) {
  Tensor images = Tensor::from<std::int32_t>({3, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor middle = images.slice(2, {1, 2});
  EXPECT_EQ(middle.spec(), (TensorSpec{{1, 2}, DType::kInt32}));
  images.data<std::int32_t>()[3] = 9;
  EXPECT_EQ(middle.data<std::int32_t>()[0], 3);
  EXPECT_EQ(middle.data<std::int32_t>()[1], 9);
  EXPECT_EQ(images.slice(6, {0}).elements(), 0);
  constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max();
  for (const auto& [first, rows] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{-1, 1}, {4, 2}, {7, 0}, {kFar, 1}})
    EXPECT_TRUE(mentions(error_of([&] { images.slice(first, {rows, 2}); }), {"[3,2]", std::to_string(first)}));
}

TEST(TensorTest, ASliceKeepsTheMemory) {
  Tensor slice = Tensor::from<float>({4}, {1, 2, 3, 4}).slice(2, {2});
  EXPECT_EQ(slice.values<float>()[1], 4);
}

TEST(TensorTest, CopiesShareAndClonesDoNot) {
  Tensor original = Tensor::from<float>({2}, {1, 2});
  const Tensor copy = original;
  const Tensor clone = original.clone();
  original.data<float>()[0] = 9;
  EXPECT_EQ(copy.data<float>()[0], 9);
  EXPECT_EQ(clone.data<float>()[0], 1);
}

TEST(TensorTest, AViewLooksAtTheOwnersMemory) {
  std::vector<float> memory = {1, 2, 3};
  Tensor view = Tensor::view(memory.data(), {Shape{3}, DType::kFloat32});
  EXPECT_TRUE(view.defined());
  view.data<float>()[1] = 7;
  EXPECT_EQ(memory[1], 7);
}

TEST(TensorTest, ReshapedSharesAndKeepsTheNumberOfElements) {
  const Tensor row = Tensor::from<float>({6}, {1, 2, 3, 4, 5, 6});
  const Tensor matrix = row.reshaped({2, 3});
  EXPECT_EQ(matrix.shape(), Shape({2, 3}));
  EXPECT_EQ(matrix.raw(), row.raw());
  EXPECT_TRUE(mentions(error_of([&] { row.reshaped({4}); }), {"[6]", "[4]"}));
}

TEST(TensorTest, ReadingTheWrongTypeIsAnError) {
  const Tensor labels = Tensor::from<std::int32_t>({1}, {3});
  EXPECT_TRUE(mentions(error_of([&] { labels.data<float>(); }), {"int32", "float32"}));
  EXPECT_TRUE(mentions(error_of([&] { labels.values<std::int64_t>(); }), {"int32", "int64"}));
}

TEST(TensorTest, FloatsConvertIntoEachOther) {
  const Tensor wide = Tensor::from<double>({2}, {0.1, std::numeric_limits<double>::quiet_NaN()});
  const Tensor narrow = wide.to(DType::kFloat32);
  EXPECT_EQ(narrow.data<float>()[0], 0.1f);
  EXPECT_TRUE(std::isnan(narrow.data<float>()[1]));
  EXPECT_EQ(narrow.to(DType::kFloat64).data<double>()[0], static_cast<double>(0.1f));
  EXPECT_EQ(wide.to(DType::kFloat64).raw(), wide.raw());
}

TEST(TensorTest, IntegersDoNotConvert) {
  const Tensor integers = Tensor::from<std::int32_t>({1}, {3});
  EXPECT_TRUE(mentions(error_of([&] { integers.to(DType::kFloat32); }), {"int32", "float32"}));
  EXPECT_TRUE(mentions(error_of([&] { Tensor(Shape{1}).to(DType::kInt8); }), {"float32", "int8"}));
}

TEST(TensorTest, AssignOverwritesInPlaceAndChecksTheShape) {
  Tensor target(Shape{2});
  const Tensor shared = target;
  target.assign(Tensor::from<float>({2}, {1, 2}));
  EXPECT_EQ(floats(shared), (std::vector<float>{1, 2}));
  target.assign(shared);
  EXPECT_EQ(floats(target), (std::vector<float>{1, 2}));
  EXPECT_TRUE(mentions(error_of([&] { target.assign(Tensor(Shape{1, 2})); }), {"[1,2]", "[2]"}));
  EXPECT_EQ(floats(target), (std::vector<float>{1, 2}));
}

}  // namespace
}  // namespace miniqat::tensor_test
