// The curves of metrics.jsonl.

#include "training/report/curves.h"

#include <gtest/gtest.h>

#include "core/text/error.h"
#include "tests/training/run_fixture.h"

namespace miniqat::training::curves_test {
namespace {

class CurvesTest : public RunFixture {
 protected:
  const Curve* find(const Curves& curves, const std::string& name) const {
    for (const Curve& curve : curves.numbers)
      if (curve.name == name) return &curve;
    return nullptr;
  }
};

TEST_F(CurvesTest, HaveEveryLineAndMarkTheDelay) {
  TrainSettings settings = this->settings();
  settings.rewrite.quant_delay = 5;
  RunObserver observer;
  train_new("run", settings, observer);
  const RunDirectory run = RunDirectory::open(path("run"));
  const Curves curves = read_curves(run);
  const Curve* loss = find(curves, "loss");
  ASSERT_NE(loss, nullptr);
  ASSERT_EQ(loss->points.size(), 12u);
  EXPECT_EQ(loss->points[3].step, 4);
  EXPECT_EQ(loss->points[3].value, run.metrics().find(4, "loss")["loss"].get<double>());
  ASSERT_EQ(curves.marks.size(), 1u);
  EXPECT_EQ(curves.marks[0].step, 5);
  EXPECT_EQ(curves.marks[0].text, "quantization begins");
  ASSERT_FALSE(curves.ranges.empty());
  EXPECT_EQ(curves.ranges[0].points.size(), 12u) << "one for a step, whether from its line or from that of an accuracy";
  EXPECT_EQ(curves.last_step, 12);
  EXPECT_EQ(find(curves, "test_accuracy")->points.size(), 2u);
}

TEST_F(CurvesTest, MarkWhatChangedInTheMiddle) {
  RunObserver observer;
  train_new("run", settings(), observer);
  const RunDirectory run = RunDirectory::open(path("run"));
  run.metrics().append({{"step", 12}, {"steps_before", 12}, {"steps", 20}});
  run.metrics().append({{"step", 13}, {"gradients_before", "int8"}, {"gradients", "float32"}});
  std::vector<std::string> texts;
  for (const CurveMark& mark : read_curves(run).marks) texts.push_back(mark.text);
  EXPECT_EQ(texts, (std::vector<std::string>{"made longer", "gradients no longer rounded"}));
}

/// What a process writes at this moment, and what another program has left.
TEST_F(CurvesTest, TakeWhatIsThere) {
  RunObserver observer;
  TrainSettings settings = this->settings();
  settings.float_only = true;
  train_new("run", settings, observer);
  std::string lines;
  for (int step = 1; step <= 2000; ++step) lines += concat("{\"step\": ", step, ", \"loss\": ", step * 0.5, "}\n");
  lines += "nonsense\n[]\n{\"step\": 2001, \"failure\": \"the loss became NaN\"}\n{\"step\": 2002, \"lo";
  place_.write("run/metrics.jsonl", lines);
  const Curves curves = read_curves(RunDirectory::open(path("run")), 100);
  EXPECT_EQ(curves.damage,
            path("run/metrics.jsonl").string() + ": 2 lines are damaged and left out, the first is line 2001");
  const Curve* loss = find(curves, "loss");
  ASSERT_NE(loss, nullptr);
  EXPECT_EQ(loss->points.size(), 100u);
  EXPECT_EQ(loss->points.front().step, 1);
  EXPECT_EQ(loss->points.back().step, 2000);
  for (const CurvePoint& point : loss->points) EXPECT_EQ(point.value, static_cast<double>(point.step) * 0.5);
  ASSERT_EQ(curves.marks.size(), 1u);
  EXPECT_EQ(curves.marks[0].text, "the loss became NaN");
}

}  // namespace
}  // namespace miniqat::training::curves_test
