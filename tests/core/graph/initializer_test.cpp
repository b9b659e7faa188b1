#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "core/graph/source_ops.h"
#include "core/platform/interruption.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"

namespace miniqat::initializer_test {
namespace {

struct Moments {
  double mean = 0;
  double stddev = 0;
  double lowest = 0;
  double highest = 0;
};

Moments moments_of(const Tensor& tensor) {
  Moments moments;
  const auto n = static_cast<double>(tensor.elements());
  for (const float x : tensor.values<float>()) moments.mean += x / n;
  for (const float x : tensor.values<float>()) moments.stddev += (x - moments.mean) * (x - moments.mean) / n;
  moments.stddev = std::sqrt(moments.stddev);
  moments.lowest = std::ranges::min(tensor.values<float>());
  moments.highest = std::ranges::max(tensor.values<float>());
  return moments;
}

Tensor filled(const Initializer& initializer, const Shape& shape, std::uint64_t key = 1) {
  Tensor tensor(shape);
  initializer.fill(tensor, key);
  return tensor;
}

std::vector<float> to_vector(const Tensor& tensor) {
  const auto values = tensor.values<float>();
  return {values.begin(), values.end()};
}

TEST(Initializer, ConstantFillsEveryElement) {
  EXPECT_EQ(to_vector(filled(Initializer::constant(0.25), {3, 5})), std::vector<float>(15, 0.25f));
}

TEST(Initializer, TruncatedNormalHasItsMomentsAndBounds) {
  const Moments moments =
      moments_of(filled({.kind = Initializer::Kind::kTruncatedNormal, .mean = 3, .stddev = 0.5}, {200, 500}));
  EXPECT_NEAR(moments.mean, 3, 0.007);
  EXPECT_NEAR(moments.stddev, 0.5 * 0.87962566, 0.005);
  EXPECT_GE(moments.lowest, 2);
  EXPECT_LE(moments.highest, 4);
  EXPECT_GT(moments.highest, 3.99);
}

TEST(Initializer, GlorotLimitUsesTheFansOfAFilterAndOfAMatrix) {
  // fan_in = 3*5*16, fan_out = 3*5*32
  const double filter_limit = std::sqrt(6.0 / (240 + 480));
  const Moments filter = moments_of(filled(Initializer::glorot_uniform(), {3, 5, 16, 32}));
  EXPECT_LE(std::max(filter.highest, -filter.lowest), filter_limit * 1.000001);
  EXPECT_GT(filter.highest, filter_limit * 0.99);
  EXPECT_LT(filter.lowest, -filter_limit * 0.99);
  EXPECT_NEAR(filter.stddev, filter_limit / std::sqrt(3.0), filter_limit * 0.02);

  const double matrix_limit = std::sqrt(6.0 / (100 + 50));
  const Moments matrix = moments_of(filled(Initializer::glorot_uniform(), {100, 50}));
  EXPECT_LE(matrix.highest, matrix_limit * 1.000001);
  EXPECT_GT(matrix.highest, matrix_limit * 0.99);
}

TEST(Initializer, HeHasVarianceTwoOverFanInAfterTruncation) {
  const double stddev = std::sqrt(2.0 / (3 * 3 * 64));
  const Moments moments = moments_of(filled(Initializer::he_normal(), {3, 3, 64, 256}));
  EXPECT_NEAR(moments.mean, 0, stddev * 0.01);
  EXPECT_NEAR(moments.stddev, stddev, stddev * 0.01);
  EXPECT_LE(moments.highest, stddev * 2 / 0.8796);
}

TEST(Initializer, HeTakesAFanInThatTheShapeDoesNotTell) {
  const double stddev = std::sqrt(2.0 / 9);
  const Moments moments = moments_of(filled(Initializer::he_normal(9), {3, 3, 4096, 1}));
  EXPECT_NEAR(moments.mean, 0, stddev * 0.01);
  EXPECT_NEAR(moments.stddev, stddev, stddev * 0.01);
}

TEST(Initializer, DefaultIsGlorotFromRankTwoAndZerosBelow) {
  EXPECT_EQ(to_vector(filled({}, {4, 6})), to_vector(filled(Initializer::glorot_uniform(), {4, 6})));
  EXPECT_EQ(to_vector(filled({}, {3})), std::vector<float>(3, 0.0f));
  EXPECT_EQ(to_vector(filled({}, {})), std::vector<float>(1, 0.0f));
}

TEST(Initializer, SameKeySameNumbersWhateverTheThreads) {
  const int before = thread_count();
  set_thread_count(1);
  const auto one = to_vector(filled(Initializer::he_normal(), {300, 400}, 9));
  set_thread_count(3);
  EXPECT_EQ(to_vector(filled(Initializer::he_normal(), {300, 400}, 9)), one);
  set_thread_count(before);
  EXPECT_NE(to_vector(filled(Initializer::he_normal(), {300, 400}, 10)), one);
}

TEST(Initializer, Float64HoldsTheFloat32NumbersWidened) {
  for (const Initializer& initializer : {Initializer{}, Initializer::constant(0.1), Initializer::truncated_normal(0.1),
                                         Initializer::glorot_uniform(), Initializer::he_normal()}) {
    const Tensor narrow = filled(initializer, {7, 9});
    Tensor wide({7, 9}, DType::kFloat64);
    initializer.fill(wide, 1);
    for (int i = 0; i < 63; ++i) EXPECT_EQ(wide.values<double>()[i], static_cast<double>(narrow.values<float>()[i]));
  }
}

TEST(Initializer, AnEmptyTensorGetsNoNumber) {
  float beside[2] = {7, 7};
  Tensor empty = Tensor::view(beside, {Shape{0, 4}});
  Initializer::he_normal().fill(empty, 1);
  EXPECT_EQ(beside[0], 7);
  EXPECT_EQ(beside[1], 7);
}

TEST(Initializer, CheckRefusesNumbersThatAreNoFloats) {
  for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL, 1e39}) {
    EXPECT_THROW(Initializer::constant(bad).check(), Error);
    EXPECT_THROW(Initializer::truncated_normal(bad).check(), Error);
    EXPECT_THROW((Initializer{.mean = bad}).check(), Error);
  }
  EXPECT_THROW(Initializer::truncated_normal(-0.1).check(), Error);
  EXPECT_NO_THROW(Initializer::truncated_normal(0).check());
  EXPECT_NO_THROW(Initializer::constant(-5).check());
}

/// Notes what is shown to it, and answers "type" with what it was told.
class FieldRecorder final : public AttributeVisitor {
 public:
  explicit FieldRecorder(std::string type = "") : type_(std::move(type)) {}

  void field(std::string_view name, double& value) override { seen[std::string(name)] = std::to_string(value); }
  void field(std::string_view, bool&) override { FAIL(); }
  void field(std::string_view, std::int64_t&) override { FAIL(); }
  void field(std::string_view, std::string&) override { FAIL(); }
  void field(std::string_view, std::vector<std::int64_t>&) override { FAIL(); }
  void field(std::string_view, std::array<std::int64_t, 2>&) override { FAIL(); }
  void field(std::string_view, std::array<std::int64_t, 4>&) override { FAIL(); }
  void field(std::string_view, std::vector<double>&) override { FAIL(); }
  void field(std::string_view, std::vector<std::array<std::int64_t, 2>>&) override { FAIL(); }
  void begin(std::string_view) override { FAIL(); }
  void end() override { FAIL(); }

  std::map<std::string, std::string> seen;

 protected:
  void choice_index(std::string_view name, int& index, std::span<const std::string_view> names) override {
    if (!type_.empty()) index = static_cast<int>(std::ranges::find(names, type_) - names.begin());
    seen[std::string(name)] = names[static_cast<std::size_t>(index)];
  }

 private:
  std::string type_;
};

TEST(Initializer, ShowsItsTypeAndTheFieldsOfThatTypeOnly) {
  using Fields = std::map<std::string, std::string>;
  const auto shown = [](Initializer initializer) {
    FieldRecorder recorder;
    initializer.visit(recorder);
    return recorder.seen;
  };
  EXPECT_EQ(shown({}), (Fields{{"type", "default"}}));
  EXPECT_EQ(shown(Initializer::constant(2)), (Fields{{"type", "constant"}, {"value", "2.000000"}}));
  EXPECT_EQ(shown(Initializer::truncated_normal(0.5)),
            (Fields{{"type", "truncated_normal"}, {"mean", "0.000000"}, {"stddev", "0.500000"}}));
  EXPECT_EQ(shown(Initializer::glorot_uniform()), (Fields{{"type", "glorot_uniform"}}));
  EXPECT_EQ(shown(Initializer::he_normal()), (Fields{{"type", "he_normal"}}));
}

TEST(Initializer, ReadsItsTypeBeforeTheFieldsThatDependOnIt) {
  FieldRecorder recorder("truncated_normal");
  Initializer initializer;
  initializer.visit(recorder);
  EXPECT_EQ(initializer.kind, Initializer::Kind::kTruncatedNormal);
  EXPECT_TRUE(recorder.seen.contains("stddev"));
}

/// A signal does not wait for the end of a large tensor.
TEST(Initializer, ALargeTensorIsFilledInPieces) {
  static int points = 0;
  const InterruptionScope counted([] { ++points; });
  for (const Initializer& initializer : {Initializer::he_normal(8), Initializer::constant(1)}) {
    points = 0;
    filled(initializer, {3, 1 << 20});
    EXPECT_EQ(points, 2);
    filled(initializer, {1 << 10});
    EXPECT_EQ(points, 2) << "a small network is there in a moment";
  }
}

}  // namespace
}  // namespace miniqat::initializer_test
