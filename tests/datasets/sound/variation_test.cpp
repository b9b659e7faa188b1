#include "datasets/sound/variation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/text/suggest.h"
#include "datasets/loader.h"
#include "datasets/user_files.h"
#include "tests/datasets/sound/wav.h"
#include "tests/errors.h"
#include "tests/temp_dir.h"

namespace miniqat::datasets::variation_test {
namespace {

using testing::error_of;
using testing::mentions;
using Recording = VariedSounds::Recording;

/// Samples as they are, 8 of them a millisecond.
SoundOptions raw(std::int64_t samples) {
  return {.features = Features::kRaw, .rate = 8000, .seconds = static_cast<double>(samples) / 8000};
}

/// Sample i is i + 1.
Recording ramp(std::int64_t samples) {
  Recording recording;
  for (std::int64_t i = 0; i < samples; ++i) recording.push_back(static_cast<std::int16_t>(i + 1));
  return recording;
}

/// Integers as a WAV file has them.
std::vector<std::int64_t> drawn(const VariedSounds& sounds, std::int64_t samples, std::uint64_t key) {
  std::vector<float> example(static_cast<std::size_t>(samples));
  sounds.write(0, 0, key, example);
  std::vector<std::int64_t> integers;
  for (const float sample : example) integers.push_back(std::llround(sample * 32768));
  return integers;
}

TEST(SoundVariation, AShiftMovesTheSamplesAndLeavesSilence) {
  const VariedSounds sounds(raw(40), {.shift_ms = 1}, {ramp(40)});
  std::set<std::int64_t> shifts;
  for (std::uint64_t key = 0; key < 200; ++key) {
    const std::vector<std::int64_t> example = drawn(sounds, 40, key);
    const std::int64_t shift = 21 - example[20];
    shifts.insert(shift);
    for (std::int64_t i = 0; i < 40; ++i)
      EXPECT_EQ(example[static_cast<std::size_t>(i)], i < shift || i >= 40 + shift ? 0 : i - shift + 1) << shift;
  }
  EXPECT_EQ(shifts.size(), 17u) << "-8 to 8 samples";
  EXPECT_EQ(*shifts.begin(), -8);
}

TEST(SoundVariation, AGainIsInDecibelsEitherWay) {
  const VariedSounds sounds(raw(10), {.gain_db = 6}, {Recording(10, 1000)});
  std::int64_t least = 1000, most = 1000;
  for (std::uint64_t key = 0; key < 200; ++key) {
    const std::vector<std::int64_t> example = drawn(sounds, 10, key);
    EXPECT_EQ(example.front(), example.back());
    least = std::min(least, example.front()), most = std::max(most, example.front());
  }
  EXPECT_NEAR(least, 501, 15);
  EXPECT_NEAR(most, 1995, 60);
}

TEST(SoundVariation, NoiseIsAddedAtARatioOfThePowers) {
  const testing::TempDir place;
  place.write("noise/hall.wav", testing::tone(300, 77));
  const VariedSounds sounds(raw(100), {.noise = place.path() / "noise", .noise_db = 0}, {Recording(100, 1000)});
  std::int64_t least = 9999, most = 0;
  for (std::uint64_t key = 0; key < 200; ++key) {
    const std::int64_t added = drawn(sounds, 100, key).at(50) - 1000;
    least = std::min(least, added), most = std::max(most, added);
  }
  EXPECT_NEAR(most, 1000, 30) << "equal powers at 0 dB";
  EXPECT_NEAR(least, 100, 5) << "and a hundredth of the power at 20 dB";
  const VariedSounds silence(raw(100), {.noise = place.path() / "noise"}, {Recording(100, 0)});
  EXPECT_EQ(drawn(silence, 100, 1), std::vector<std::int64_t>(100));
  std::filesystem::create_directory(place.path() / "empty");
  EXPECT_TRUE(mentions(error_of([&] { VariedSounds(raw(100), {.noise = place.path() / "empty"}, {}); }),
                       {"no sounds", "empty"}));
}

TEST(SoundVariation, NoiseOfWhichNoSampleIsLeftIsAnError) {
  const testing::TempDir place;
  place.write("noise/hall.wav", testing::tone(300, 77));
  place.write("noise/click.wav", testing::tone(300, 1));
  SoundOptions options = raw(100);
  const SoundVariation variation{.noise = place.path() / "noise"};
  const auto error = [&] { return error_of([&] { VariedSounds(options, variation, {}); }); };
  EXPECT_EQ(error(), "");
  // The test part has the end of each.
  options.silence = 30;
  EXPECT_TRUE(
      mentions(error(), {"a sound in ", "/noise\", the folder of noise, is too short: no sample is left of it"}));
}

TEST(SoundVariation, AWindowTakesWhatALongerRecordingHasBesideIt) {
  SoundOptions options{.features = Features::kLogMel,
                       .rate = 8000,
                       .seconds = 0,
                       .window_ms = 4,
                       .stride_ms = 2,
                       .bands = 2,
                       .low_hz = 0,
                       .high_hz = 4000,
                       .frames = 2};
  Recording recording;
  for (int i = 0; i < 200; ++i) recording.push_back(static_cast<std::int16_t>(1000 * std::sin(0.01 * i * i)));
  // A shift that rounds to none.
  const VariedSounds sounds(options, {.shift_ms = 1e-3}, {recording});
  std::vector<float> varied(4), samples, plain(4);
  sounds.write(0, 5, 1, varied);
  for (int i = 5 * 16; i < 5 * 16 + 48; ++i) samples.push_back(static_cast<float>(recording[i]) / 32768);
  FrontEnd(options).features(samples, plain);
  EXPECT_EQ(varied, plain) << "the same as without a variation";
}

class VariedLoaderTest : public ::testing::Test {
 protected:
  VariedLoaderTest() {
    for (int i = 0; i < 12; ++i)
      for (const char* word : {"yes", "no"})
        place_.write(concat("sounds/", word, "/", i, ".wav"),
                     testing::tone(static_cast<std::int16_t>(100 * i + (*word == 'y' ? 1000 : 3000))));
    options_.sounds = raw(80);
    options_.variation = {.shift_ms = 2, .gain_db = 3};
  }
  Splits load() const { return load_user_files(place_.path() / "sounds", options_); }

  /// The images of some batches.
  static std::vector<std::vector<float>> batches(const Dataset& data, const Loader::Options& options, int count) {
    Loader loader(data, options);
    std::vector<std::vector<float>> all;
    for (int i = 0; i < count; ++i) {
      const auto numbers = loader.next().images.values<float>();
      all.emplace_back(numbers.begin(), numbers.end());
    }
    return all;
  }

  testing::TempDir place_;
  LoadOptions options_;
};

TEST_F(VariedLoaderTest, BatchesAreVariedAnewAndResumeToTheBit) {
  const Splits splits = load();
  const Loader::Options plain{.batch_size = 5}, varied{.batch_size = 5, .augment = {.vary_sounds = true}};
  const auto whole = batches(splits.train, varied, 9);
  EXPECT_NE(whole[0], batches(splits.train, plain, 1)[0]);
  EXPECT_EQ(batches(splits.train, {.batch_size = 5, .first_batch = 7, .augment = varied.augment}, 2).back(), whole[8]);
  const auto rows = batches(splits.train, {.batch_size = 5, .first_row = 3, .rows = 2, .augment = varied.augment}, 9);
  EXPECT_TRUE(std::ranges::equal(rows[8], std::span(whole[8]).subspan(3 * 80))) << "ranks share a batch";
  EXPECT_NE(batches(splits.train, {.batch_size = 5, .seed = 2, .augment = varied.augment}, 1)[0], whole[0]);
}

TEST_F(VariedLoaderTest, TheyAreStandardisedAsTheOthersAre) {
  options_.variation = {.shift_ms = 1e-3};
  const Splits splits = load();
  ASSERT_TRUE(splits.train.standard);
  const Dataset some = examples_at(splits.train, std::vector<std::int64_t>{7, 3, 5, 1});
  EXPECT_EQ(batches(some, {.batch_size = 2, .augment = {.vary_sounds = true}}, 6), batches(some, {.batch_size = 2}, 6));
}

TEST_F(VariedLoaderTest, OnlySoundsThatWereKeptCanBe) {
  options_.variation = {};
  const Splits splits = load();
  EXPECT_TRUE(mentions(error_of([&] { Loader(splits.train, {.batch_size = 2, .augment = {.vary_sounds = true}}); }),
                       {"only sounds"}));
}

}  // namespace
}  // namespace miniqat::datasets::variation_test
