// The front end of sounds in integers: beside the float one, compiled with sanitizers, and its refusals.

#include "exporters/c/front_end.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <set>

#include "core/files/files.h"
#include "core/tensors/random.h"
#include "datasets/sound/features.h"
#include "exporters/c/source.h"
#include "integer/reference/engine.h"
#include "tests/errors.h"
#include "tests/exporters/c/c_project.h"
#include "tests/exporters/c/sounds.h"

namespace miniqat::exporters::front_end_test {
namespace {

using integer::Model;
using testing::kSounds;
using testing::mentions;
using testing::sound_model;
using Samples = std::vector<std::int16_t>;

datasets::SoundOptions float_options(const CFrontEnd& options) {
  const auto milliseconds = [&](std::int64_t samples) {
    return 1000 * static_cast<double>(samples) / static_cast<double>(options.rate);
  };
  datasets::SoundOptions result;
  result.features = options.is_raw()           ? datasets::Features::kRaw
                    : options.coefficients > 0 ? datasets::Features::kMfcc
                                               : datasets::Features::kLogMel;
  result.rate = options.rate;
  result.seconds = milliseconds(options.samples()) / 1000;
  result.window_ms = milliseconds(options.window);
  result.stride_ms = milliseconds(options.stride);
  result.bands = options.bands;
  result.coefficients = options.coefficients;
  result.low_hz = options.low_hz;
  result.high_hz = options.high_hz;
  result.mel_scale = options.slaney ? datasets::MelScale::kSlaney : datasets::MelScale::kHtk;
  return result;
}

std::vector<float> float_features(const CFrontEnd& options, const Samples& samples) {
  std::vector<float> reals, features(static_cast<std::size_t>(options.steps * options.numbers()));
  for (const std::int16_t sample : samples) reals.push_back(static_cast<float>(sample) / 32768);
  datasets::FrontEnd(float_options(options)).features(reals, features);
  return features;
}

/// The largest distance between the integers and the float front end's numbers, in the latter's units: each is
/// standardised by itself, so that a step of the grid is `grid`, and 128 of them are the most that can be seen.
double largest_error(const CFrontEnd& options, const Samples& samples, float grid = 1.0f / 1024) {
  const std::vector<float> wanted = float_features(options, samples);
  CFrontEnd one = options;
  one.steps = 1;
  Model model{.name = "error"};
  model.tensors = {{.name = "x", .shape = {1, options.numbers()}, .grid = {.scale = grid, .zero_point = 128}}};
  const auto numbers = static_cast<std::size_t>(options.numbers());
  double largest = 0;
  for (std::size_t step = 0; step < static_cast<std::size_t>(options.steps); ++step) {
    const auto at = wanted.begin() + static_cast<std::ptrdiff_t>(step * numbers);
    model.input_standard =
        Standard{.mean = {at, at + static_cast<std::ptrdiff_t>(numbers)}, .deviation = std::vector<float>(numbers, 1)};
    const std::span<const std::int16_t> window(samples.data() + step * static_cast<std::size_t>(options.stride),
                                               static_cast<std::size_t>(options.window));
    for (const std::uint8_t value : FixedFrontEnd(one, model).features(window))
      largest = std::max(largest, std::abs(value - 128) * double{grid});
  }
  return largest;
}

/// Noise below a rising tone, of such an amplitude; half of the time the noise is nearly gone.
Samples noisy_tone(std::int64_t count, double amplitude) {
  Random random(3);
  Samples samples;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto t = static_cast<double>(i);
    const double noise = (static_cast<double>(random.below(2000)) - 1000) / 2500 * (i % 4000 < 2000 ? 1 : 0.01);
    samples.push_back(
        static_cast<std::int16_t>(std::round(32767 * amplitude * (0.6 * std::sin(t * t * 1e-5) + noise))));
  }
  return samples;
}

/// Mean, deviation and grid, which are one multiplication and one sum here: at most a step apart, also at the grid's
/// ends.
TEST(FixedFrontEnd, GivesTheIntegersOfStandardisedNumbers) {
  for (const bool is_standardised : {true, false})
    for (const auto& [name, options] : kSounds) {
      Model model = sound_model(options);
      if (!is_standardised) {
        model.tensors[0].grid = {.scale = options.is_raw() ? 0.004f : 0.1f, .zero_point = 200, .bits = 8};
        model.input_standard = {};
      }
      const Samples samples = noisy_tone(options.samples(), 0.5);
      const std::vector<std::uint8_t> found = FixedFrontEnd(options, model).features(samples);
      const std::vector<float> wanted = float_features(options, samples);
      std::set<int> seen;
      int apart = 0;
      for (std::size_t i = 0; i < found.size(); ++i) {
        const float number = is_standardised ? model.input_standard->standardised(
                                                   i % static_cast<std::size_t>(options.numbers()), wanted[i])
                                             : wanted[i];
        const int integer = integer::quantize(model.tensors[0].grid, number);
        EXPECT_LE(std::abs(integer - found[i]), 1) << name << " " << i;
        apart += integer == found[i] ? 0 : 1;
        seen.insert(integer);
      }
      EXPECT_LE(apart, std::ssize(found) / 50) << name;
      EXPECT_GT(seen.size(), 20u) << name;
    }
}

/// The extremes of 16 bits, and what lies between.
std::vector<Samples> extremes(std::int64_t count) {
  const auto made = [&](const std::function<int(std::int64_t)>& sample) {
    Samples samples;
    for (std::int64_t i = 0; i < count; ++i) samples.push_back(static_cast<std::int16_t>(sample(i)));
    return samples;
  };
  Random random(7);
  return {made([](std::int64_t) { return 0; }),
          made([](std::int64_t) { return -32768; }),
          made([](std::int64_t) { return 32767; }),
          made([](std::int64_t i) { return i % 2 == 0 ? 32767 : -32768; }),
          made([](std::int64_t i) { return i / 40 % 2 == 0 ? 32767 : -32768; }),
          made([&](std::int64_t i) { return i == count / 2 ? -1 : 0; }),
          made([&](std::int64_t i) { return i == count / 2 ? -32768 : 1; }),
          made([&](std::int64_t) { return static_cast<int>(random.below(65536)) - 32768; })};
}

TEST(FixedFrontEnd, IsTheFloatOneWithinAThousandth) {
  for (CFrontEnd options :
       {CFrontEnd{},
        {.coefficients = 0},
        {.rate = 8000, .window = 200, .stride = 80, .steps = 30, .bands = 20, .coefficients = 13},
        {.window = 512, .stride = 512, .steps = 9, .bands = 128, .coefficients = 0, .low_hz = 0, .high_hz = 8000},
        {.window = 401, .stride = 160, .steps = 12},
        {.slaney = true},
        // The anomaly detector of MLPerf Tiny.
        {.window = 1024,
        .stride = 512,
        .steps = 5,
        .bands = 128,
        .coefficients = 0,
        .low_hz = 0,
        .high_hz = 8000,
        .slaney = true},
        {.window = 3, .stride = 2, .steps = 40, .bands = 2, .coefficients = 2, .high_hz = 8000}})
    for (const double amplitude : {0.99, 0.1, 0.01, 0.001})
      EXPECT_LE(largest_error(options, noisy_tone(options.samples(), amplitude)), 0.0015)
          << options.window << " " << options.coefficients << " " << amplitude;
}

/// Bands far below a tone of full scale hold the rounding of 16 bits and little else.
TEST(FixedFrontEnd, IsNearTheFloatOneBesideAPureTone) {
  Samples samples;
  for (int i = 0; i < 16000; ++i) samples.push_back(static_cast<std::int16_t>(std::lround(32767 * std::sin(i * 0.3))));
  EXPECT_LE(largest_error({}, samples), 0.02);
  EXPECT_LE(largest_error({.coefficients = 0}, samples), 0.02);
}

TEST(FixedFrontEnd, SilenceIsTheLeastPower) {
  EXPECT_EQ(largest_error({.coefficients = 0}, Samples(16000, 0)), 0);
  EXPECT_LE(largest_error({}, Samples(16000, 0)), 0.0015);
  EXPECT_EQ(largest_error({.coefficients = 0, .slaney = true}, Samples(16000, 0)), 0);
}

/// Where most bands hold nothing but rounding, 130 dB and more below the samples. An overflow would be many units.
TEST(FixedFrontEnd, IsNearTheFloatOneAtTheExtremes) {
  for (const CFrontEnd& options : {CFrontEnd{}, {.coefficients = 0}, {.coefficients = 0, .slaney = true}})
    for (const Samples& samples : extremes(options.samples()))
      EXPECT_LE(largest_error(options, samples, 1.0f / 64), 0.3);
}

/// What PREFIX_features() of compiled C makes of sounds, one behind another.
std::string compiled_features(const CFrontEnd& options, const Model& model, const Samples& samples) {
  Random random(1);
  const CSource c = c_source(model, "net", "net.h", testing::random_images(random, model, 1), {}, "", options);
  const testing::TempDir place;
  place.write("net.h", c.header);
  place.write("net.c", c.source);
  place.write("main.c", R"c(#include <stdio.h>
#include "net.h"
int main(void) {
  static int16_t samples[NET_SAMPLES];
  static uint8_t input[NET_INPUT_SIZE];
  while (fread(samples, sizeof samples, 1, stdin) == 1) net_features(samples, input), fwrite(input, sizeof input, 1, stdout);
  return 0;
}
)c");
  place.write("in", std::string(reinterpret_cast<const char*>(samples.data()), samples.size() * sizeof samples[0]));
  const std::string command =
      concat("cd '", place.path().string(), "' && cc ", testing::kStrict,
             " -O1 -fsanitize=undefined -fno-sanitize-recover=all -o program main.c net.c && ./program < in > out");
  EXPECT_EQ(std::system(command.c_str()), 0);
  return read_file(place.path() / "out");
}

TEST(CFrontEndTest, GivesTheSameIntegersAndOutputsUnderSanitizers) {
  for (const auto& [name, options] : kSounds) {
    const Model model = sound_model(options);
    const FixedFrontEnd front_end(options, model);
    Random random(1);
    const CSource c = c_source(model, "net", "net.h", testing::random_images(random, model, 1), {}, "", options);
    const testing::TempDir place;
    place.write("net.h", c.header);
    place.write("net.c", c.source);
    place.write("main.c", R"c(#include <stdio.h>
#include "net.h"
int main(void) {
  static int16_t samples[NET_SAMPLES];
  static uint8_t input[NET_INPUT_SIZE], output[NET_OUTPUT_SIZE];
  if (net_sound_self_test() != 0 || net_self_test() != 0) return 1;
  while (fread(samples, sizeof samples, 1, stdin) == 1) {
    net_features(samples, input);
    net_run_sound(samples, output);
    fwrite(input, sizeof input, 1, stdout);
    fwrite(output, sizeof output, 1, stdout);
  }
  return 0;
}
)c");
    std::string in, expected;
    for (const Samples& samples : extremes(options.samples())) {
      in.append(reinterpret_cast<const char*>(samples.data()), samples.size() * sizeof(std::int16_t));
      const std::vector<std::uint8_t> features = front_end.features(samples);
      const Tensor input =
          Tensor::from<std::uint8_t>(integer::batch_shape(1, model.tensor(model.input).shape), features);
      const Tensor output = integer::reference::run(model, input)[static_cast<std::size_t>(model.output)];
      expected.append(features.begin(), features.end());
      expected.append(output.data<std::uint8_t>(), output.data<std::uint8_t>() + output.elements());
    }
    place.write("in", in);
    for (const char* flags : {"-O1 -fsanitize=address,undefined -fno-sanitize-recover=all", "-O2"}) {
      const std::string command = concat("cd '", place.path().string(), "' && cc ", testing::kStrict, " ", flags,
                                         " -o program main.c net.c && ./program < in > out");
      ASSERT_EQ(std::system(command.c_str()), 0) << name << " " << flags;
      EXPECT_EQ(read_file(place.path() / "out"), expected) << name << " " << flags;
    }
    // A wrong entry of a table, or another sample, is found, and floats are nowhere.
    std::string wrong = c.source;
    const std::string right = options.is_raw() ? "samples[0]" : "1073741824";
    const std::size_t at =
        wrong.find(right + (options.is_raw() ? "," : "};\n"), options.is_raw() ? 0 : wrong.find("sound_sines["));
    ASSERT_NE(at, std::string::npos);
    place.write("net.c", wrong.replace(at, right.size(), options.is_raw() ? "1 - samples[0]" : "1000000000"));
    EXPECT_NE(
        std::system(
            concat("cd '", place.path().string(), "' && cc -o program main.c net.c && ./program < in > out").c_str()),
        0);
    EXPECT_EQ(c.source.find("float"), std::string::npos) << name;
  }
}

/// The file's name is the prefix, and sound.c a likely one: no name of the prefix is one that all such files have.
TEST(CFrontEndTest, AnyPrefixCompiles) {
  for (const auto& [name, options] : {kSounds[1], kSounds[2]}) {
    const Model model = sound_model(options);
    Random random(1);
    const Tensor images = testing::random_images(random, model, 1);
    for (const std::string prefix : {"sound", "test", "expected"}) {
      const CSource c = c_source(model, prefix, "net.h", images, {}, "", options);
      const testing::TempDir place;
      place.write("net.h", c.header);
      place.write("net.c", c.source);
      const std::string command = concat("cd '", place.path().string(), "' && cc ", testing::kStrict, " -c net.c");
      EXPECT_EQ(std::system(command.c_str()), 0) << name << " " << prefix;
    }
  }
}

/// All samples that there are, with means and deviations of quiet and of loud sounds, one off the middle, and none.
TEST(CFrontEndTest, RawSamplesAreTheFloatOnesOnTheGrid) {
  const CFrontEnd options = {.window = 1, .stride = 1, .steps = 256, .bands = 0, .coefficients = 0};
  Samples samples(65536);
  std::iota(samples.begin(), samples.end(), std::int16_t{-32768});
  const struct {
    std::optional<Standard> standard;
    integer::Grid grid;
  } cases[] = {{Standard{.mean = {-1e-4f}, .deviation = {0.05f}}, {.scale = 0.031f, .zero_point = 121}},
               {Standard{.mean = {2e-5f}, .deviation = {3e-4f}}, {.scale = 0.047f, .zero_point = 128}},
               {Standard{.mean = {0.3f}, .deviation = {0.6f}}, {.scale = 0.017f, .zero_point = 100}},
               {Standard{.mean = {0.01f}, .deviation = {0.2f}}, {.scale = 0.6f, .zero_point = 7, .bits = 4}},
               {Standard{.mean = {0}, .deviation = {0.2f}}, {.scale = 2, .zero_point = 1, .bits = 2}},
               {{}, {.scale = 1.0f / 128, .zero_point = 128}},
               {{}, {.scale = 0.0077f, .zero_point = 130}}};
  int apart = 0;
  for (const auto& [standard, grid] : cases) {
    Model model{.name = "raw"};
    model.tensors = {{.name = "x", .shape = {options.steps, 1}, .grid = grid}};
    model.input_standard = standard;
    const std::string found = compiled_features(options, model, samples);
    ASSERT_EQ(found.size(), samples.size());
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const float real = static_cast<float>(samples[i]) / 32768;
      const int wanted = integer::quantize(grid, standard ? standard->standardised(0, real) : real);
      const int distance = std::abs(wanted - static_cast<std::uint8_t>(found[i]));
      ASSERT_LE(distance, 1) << samples[i];
      apart += distance;
    }
  }
  std::printf("%d of %zu integers of raw samples are one step apart\n", apart, std::size(cases) * samples.size());
  EXPECT_LE(apart, 5);
}

TEST(CFrontEndTest, RefusesWhatDoesNotFit) {
  const CFrontEnd options = kSounds[0].second;
  const Model model = sound_model(options);
  const auto refusal = [&](const std::function<void(CFrontEnd&, Model&)>& change) {
    CFrontEnd other = options;
    Model changed = model;
    change(other, changed);
    return testing::error_of([&] { FixedFrontEnd(other, changed); });
  };
  EXPECT_EQ(refusal([](CFrontEnd&, Model&) {}), "");
  EXPECT_TRUE(mentions(refusal([](CFrontEnd& other, Model&) { other.steps = 7; }), {"makes [7,", "the model takes ["}));
  EXPECT_TRUE(mentions(refusal([](CFrontEnd& other, Model&) { other.window = 32769; }), {"32769", "3 to 32768"}));
  EXPECT_TRUE(
      mentions(refusal([](CFrontEnd& other, Model&) { other.low_hz = 1, other.high_hz = 2; }), {"no frequency"}));
  EXPECT_TRUE(mentions(refusal([](CFrontEnd&, Model& changed) { changed.input_standard->deviation[0] = 1e-30f; }),
                       {"deviations", "too small"}));
  CFrontEnd raw = kSounds[2].second;
  raw.window = 2;
  EXPECT_TRUE(mentions(testing::error_of([&] { FixedFrontEnd(raw, sound_model(raw)); }), {"have 2 samples", "1 to 1"}));
}

}  // namespace
}  // namespace miniqat::exporters::front_end_test
