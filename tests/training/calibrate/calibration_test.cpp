#include "training/calibrate/calibration.h"

#include "quantize/quantizers.h"
#include "tests/training/run_fixture.h"
#include "training/run/run_source.h"

namespace miniqat::training::calibration_test {
namespace {

struct Listener : RunObserver {
  void on_rewrite(const quantize::RewriteReport& report) override { inserted = report.inserted.size(); }
  void on_batch(std::int64_t done, std::int64_t total) override {
    batches = done;
    EXPECT_EQ(total, 5);
  }
  bool wants_to_stop() override { return batches == last; }

  std::size_t inserted = 0;
  std::int64_t batches = 0;
  std::int64_t last = -1;
};

class Calibration : public RunFixture {
 protected:
  Calibration() {
    RunObserver silent;
    TrainSettings in_float = settings();
    in_float.float_only = true;
    train_new("float", in_float, silent);
    request_.run = path("float").string();
    request_.calibrate.batches = 5;
    request_.threads = 1;
  }
  Calibrated calibrated(Listener& listener) const {
    return calibrate(request_, RunDirectory::fresh(path("ptq"), "none"), listener);
  }

  CalibrationRequest request_;
};

TEST_F(Calibration, MakesARunThatIsQuantized) {
  Listener listener;
  const Calibrated result = calibrated(listener);
  EXPECT_EQ(listener.batches, 5);
  EXPECT_EQ(listener.inserted, result.ranges.size());
  EXPECT_GT(result.ranges.size(), 3u);
  EXPECT_EQ(result.in_float.examples, 20);
  EXPECT_EQ(result.quantized.test->examples, 20);
  EXPECT_FALSE(result.quantized.validation);
  const RunSource run = open_run(path("ptq").string(), "");
  EXPECT_EQ(quantization_of(run.directory).label(), "W8A8");
  EXPECT_EQ(run.note, "");
}

TEST_F(Calibration, ThatIsStoppedLeavesNoRun) {
  Listener listener;
  listener.last = 3;
  EXPECT_THROW(calibrated(listener), Stopped);
  EXPECT_EQ(listener.batches, 3);
  EXPECT_FALSE(std::filesystem::exists(path("ptq")));
}

}  // namespace
}  // namespace miniqat::training::calibration_test
