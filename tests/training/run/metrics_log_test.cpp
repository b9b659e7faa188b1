#include "training/run/metrics_log.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/files/files.h"
#include "core/text/json.h"
#include "tests/temp_dir.h"

namespace miniqat::training::metrics_log_test {
namespace {

namespace fs = std::filesystem;

class MetricsLogTest : public ::testing::Test {
 protected:
  fs::path file() const { return place_.path() / "metrics.jsonl"; }
  MetricsLog log() const { return MetricsLog(file()); }
  void write(const std::string& text) const { place_.write("metrics.jsonl", text); }
  /// What is left of `text` when a run goes on at `step`.
  std::string left_of(const std::string& text, std::int64_t step) const {
    write(text);
    log().forget_after(step);
    return read_file(file());
  }

  const testing::TempDir place_;
};

std::string line(int step) { return "{\"step\": " + std::to_string(step) + ", \"loss\": 0.5}\n"; }

TEST_F(MetricsLogTest, DropsWhatIsBeyondAStep) {
  const std::string kept = line(1) + line(2);
  EXPECT_EQ(left_of(kept, 2), kept);
  EXPECT_EQ(left_of(kept + line(3) + line(4), 2), kept);
  EXPECT_EQ(left_of(kept + line(3) + "{\"step\": 4, \"lo", 2), kept);
  EXPECT_EQ(left_of(kept + "{\"step\": 2, \"lo", 2), kept);
  EXPECT_EQ(left_of(kept + "\n\n[1]\n{}\n{\"step\": 0.5}\n", 2), kept);
  EXPECT_EQ(left_of(kept + std::string(3000, '\0'), 2), kept);
  EXPECT_EQ(left_of(kept, 0), "");
  EXPECT_EQ(left_of("{\"st", 9), "");
  EXPECT_EQ(left_of("", 9), "");
  EXPECT_EQ(left_of("\n", 9), "");
}

TEST_F(MetricsLogTest, ALineWithoutItsNewlineGetsOne) {
  const std::string kept = line(1) + line(2);
  EXPECT_EQ(left_of(kept.substr(0, kept.size() - 1), 2), kept);
  EXPECT_EQ(left_of(line(1).substr(0, line(1).size() - 1), 2), line(1));
}

TEST_F(MetricsLogTest, FindsTheLastLineOfAStep) {
  write(line(1) + "{\"step\": 2, \"loss\": 1.0}\nno line\n{\"step\": 2, \"loss\": 3.0}\n" +
        "{\"step\": 2, \"test_accuracy\": 0.25}\n" + line(3));
  EXPECT_EQ(log().find(2, "loss")["loss"], 3.0);
  EXPECT_EQ(log().find(2, "test_accuracy")["test_accuracy"], 0.25);
  EXPECT_EQ(log().find(1, "loss")["loss"], 0.5);
  EXPECT_TRUE(log().find(1, "test_accuracy").is_null());
  EXPECT_TRUE(log().find(4, "loss").is_null());
  EXPECT_TRUE(log().find(0, "loss").is_null());
}

TEST_F(MetricsLogTest, TheLastLineIsTheLastThatIsOne) {
  write(line(1) + line(7) + "no line\n{\"loss\": 2}\n{\"step\": 8");
  EXPECT_EQ(log().last()["step"], 7);
  write("no line\n");
  EXPECT_TRUE(log().last().is_null());
}

TEST_F(MetricsLogTest, NoFileHasNoLines) {
  EXPECT_TRUE(log().last().is_null());
  EXPECT_TRUE(log().find(0, "loss").is_null());
  log().forget_after(0);
  EXPECT_FALSE(log().exists());
}

// Lines end anywhere in the pieces of the file that are read.
TEST_F(MetricsLogTest, ManyLinesAreFoundAndDropped) {
  constexpr int kLines = 60'000;
  std::string text;
  std::size_t half = 0;
  for (int step = 1; step <= kLines; ++step) {
    text += line(step);
    if (step == kLines / 2) half = text.size();
  }
  ASSERT_GT(text.size(), std::size_t{3} << 19);
  write(text);
  for (const int step : {1, 9'999, kLines}) EXPECT_EQ(log().find(step, "loss")["step"], step);
  EXPECT_EQ(left_of(text, kLines / 2), text.substr(0, half));
}

TEST_F(MetricsLogTest, ALineOfAnyLengthIsNoneOfOurs) {
  const std::string kept = line(1);
  EXPECT_EQ(left_of(kept + "{\"step\": 1, \"text\": \"" + std::string(5 << 20, 'x') + "\"}\n" + line(9), 1), kept);
}

// More than read_file() takes, most of it a hole. Resuming needs the end alone.
TEST_F(MetricsLogTest, AFileMayBeLargerThanTwoGigabytes) {
  constexpr std::uintmax_t kHole = std::uintmax_t{1} << 33;
  write("");
  fs::resize_file(file(), kHole);
  const std::string kept = "\n" + line(7);
  std::ofstream(file(), std::ios::app) << kept << line(8) << "{\"st";
  EXPECT_EQ(log().find(7, "loss")["loss"], 0.5);
  log().forget_after(7);
  EXPECT_EQ(fs::file_size(file()), kHole + kept.size());
  EXPECT_EQ(read_part(file(), kHole, 1000), kept);
  log().append({{"step", 8}, {"loss", 2.0}});
  EXPECT_EQ(log().find(8, "loss")["loss"], 2.0);
}

}  // namespace
}  // namespace miniqat::training::metrics_log_test
