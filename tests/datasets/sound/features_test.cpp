#include "datasets/sound/features.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <fstream>
#include <numbers>
#include <sstream>
#include <string>

#include "tests/errors.h"
#include "tests/source_dir.h"

namespace miniqat::datasets::features_test {
namespace {

/// As experiments/features_by_librosa.py has it.
std::vector<float> sound_of(std::int64_t count) {
  std::vector<float> samples;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto t = static_cast<double>(i);
    const double noise = static_cast<double>(i * 7919 % 1000) / 1000 - 0.5;
    samples.push_back(static_cast<float>(0.5 * std::sin(0.03 * t + 0.00002 * t * t) + 0.1 * noise));
  }
  return samples;
}

std::vector<float> features_of(const SoundOptions& options, const std::vector<float>& samples) {
  std::vector<float> example(static_cast<std::size_t>(options.example_shape().elements()));
  FrontEnd(options).features(samples, example);
  return example;
}

TEST(Features, AreThoseOfLibrosa) {
  std::ifstream file(source_dir() / "tests/datasets/sound/features_by_librosa.txt");
  int lines = 0;
  for (std::string text; std::getline(file, text);) {
    if (text.starts_with("#")) continue;
    std::istringstream words(text);
    std::string features, scale;
    SoundOptions options;
    double window = 0, stride = 0;
    std::size_t step = 0;
    words >> features >> options.rate >> window >> stride >> options.bands >> options.low_hz >> options.high_hz >>
        scale >> step;
    options.mel_scale = scale == "slaney" ? MelScale::kSlaney : MelScale::kHtk;
    options.features = features == "mfcc" ? Features::kMfcc : Features::kLogMel;
    options.window_ms = 1000 * window / static_cast<double>(options.rate);
    options.stride_ms = 1000 * stride / static_cast<double>(options.rate);
    const std::vector<float> example = features_of(options, sound_of(options.rate));
    const auto numbers = static_cast<std::size_t>(options.example_shape()[1]);
    double number = 0;
    for (std::size_t k = 0; words >> number; ++k)
      EXPECT_NEAR(example.at(step * numbers + k), number, 1e-4) << text.substr(0, 50) << ", number " << k;
    ++lines;
  }
  EXPECT_EQ(lines, 30);
}

/// 13 bands from 0 to 6400 Hz, which is 42 of Slaney's mel, have their corners 3 mel apart: 200 Hz up to 1000 Hz, which
/// is 15 mel, and a factor of 6.4^(1/9) from there on.
TEST(Features, OfSlaneysScaleAreSumsOverTriangles) {
  const SoundOptions options{.features = Features::kLogMel,
                             .rate = 12800,
                             .seconds = 0.08,
                             .window_ms = 80,
                             .bands = 13,
                             .low_hz = 0,
                             .high_hz = 6400,
                             .mel_scale = MelScale::kSlaney};
  const std::vector<float> samples = sound_of(1024), found = features_of(options, samples);
  std::vector<double> power;
  for (int k = 0; k <= 512; ++k) {
    std::complex<double> sum = 0;
    for (int t = 0; t < 1024; ++t)
      sum += std::pow(std::sin(std::numbers::pi * t / 1024), 2) * samples[static_cast<std::size_t>(t)] *
             std::polar(1.0, -2 * std::numbers::pi * k * t / 1024);
    power.push_back(std::norm(sum));
  }
  std::vector<double> corners = {0, 200, 400, 600, 800, 1000};
  while (corners.size() < 15) corners.push_back(corners.back() * std::pow(6.4, 1.0 / 9));
  for (std::size_t b = 0; b < 13; ++b) {
    const double left = corners[b], middle = corners[b + 1], right = corners[b + 2];
    double sum = 0;
    for (std::size_t k = 0; k <= 512; ++k) {
      const double hertz = 12.5 * static_cast<double>(k);
      const double share = hertz <= middle ? (hertz - left) / (middle - left) : (right - hertz) / (right - middle);
      sum += std::max(0.0, share) * 2 / (right - left) * power[k];
    }
    EXPECT_NEAR(found.at(b), std::log(sum), 1e-5) << b;
  }
  // A click has the same power in all bins, which are 12.5 Hz apart: what is left is the area of the triangles.
  std::vector<float> click(1024);
  click[512] = 1;
  for (const float band : features_of(options, click)) EXPECT_NEAR(band, std::log(1 / 12.5), 1e-3);
}

TEST(Features, OfTheKeywordSpotterAre49StepsOf10) {
  EXPECT_EQ(SoundOptions().example_shape(), (Shape{49, 10}));
  SoundOptions raw{.features = Features::kRaw, .rate = 8000, .seconds = 0.5};
  EXPECT_EQ(raw.example_shape(), (Shape{4000, 1}));
  const std::vector<float> samples = sound_of(4000);
  EXPECT_EQ(features_of(raw, samples), samples);
}

TEST(Features, OfTheAnomalyDetectorAreFiveStepsOf128) {
  EXPECT_EQ(anomaly_detector().example_shape(), (Shape{5, 128}));
  EXPECT_EQ(anomaly_detector().window(), 1024);
  EXPECT_EQ(anomaly_detector().stride(), 512);
  EXPECT_EQ(testing::error_of([] { anomaly_detector(8000).check(); }), "");
  EXPECT_EQ(SoundOptions().steps(639), 0);
  EXPECT_EQ(SoundOptions().steps(640), 1);
}

TEST(Features, OfSilenceAreFinite) {
  for (const float number : features_of({}, std::vector<float>(16000))) EXPECT_TRUE(std::isfinite(number));
}

TEST(Features, OptionsThatDoNotFitAreNamed) {
  const auto refusal = [](SoundOptions options) { return testing::error_of([&] { options.check(); }); };
  EXPECT_EQ(refusal({}), "");
  const std::pair<SoundOptions, const char*> cases[] = {{{.rate = 10}, "sample_rate"},
                                                        {{.seconds = 0}, "seconds"},
                                                        {{.seconds = NAN}, "seconds"},
                                                        {{.window_ms = 2000}, "window_ms"},
                                                        {{.stride_ms = 0.01}, "stride_ms"},
                                                        {{.bands = 0}, "bands"},
                                                        {{.low_hz = 5000}, "low_hz"},
                                                        {{.high_hz = 9000}, "high_hz"},
                                                        {{.coefficients = 41}, "coefficients"},
                                                        {{.frames = -1}, "frames"},
                                                        {{.frames = 50}, "frames"},
                                                        {{.seconds = -1, .frames = 5}, "seconds"}};
  for (const auto& [options, name] : cases) EXPECT_TRUE(testing::mentions(refusal(options), {name})) << name;
}

}  // namespace
}  // namespace miniqat::datasets::features_test
