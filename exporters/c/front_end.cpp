#include "exporters/c/front_end.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <string_view>
#include <utility>

#include "core/text/error.h"
#include "exporters/c/sound_texts.h"
#include "exporters/c/text.h"

namespace miniqat::exporters {
namespace {

// C99 that is C++ as well.
// NOLINTBEGIN(bugprone-suspicious-include)
#include "exporters/c/sound/raw.c"
#include "exporters/c/sound/steps.c"
#include "exporters/c/sound/test_sound.c"
// NOLINTEND(bugprone-suspicious-include)

constexpr double kLeastPower = 1e-10;
constexpr std::int64_t kLongestWindow = 32768;

double mel_of(double hertz, bool slaney) {
  if (!slaney) return 2595 * std::log10(1 + hertz / 700);
  return hertz < 1000 ? 3 * hertz / 200 : 15 + 27 * std::log(hertz / 1000) / std::log(6.4);
}
double hertz_of(double mel, bool slaney) {
  if (!slaney) return 700 * (std::pow(10, mel / 2595) - 1);
  return mel < 15 ? 200 * mel / 3 : 1000 * std::pow(6.4, (mel - 15) / 27);
}

/// x times 2^bits, to the nearest integer, at most `most`.
template <class T>
T fixed(double x, int bits, double most = static_cast<double>(std::numeric_limits<T>::max())) {
  return static_cast<T>(std::min(std::round(std::ldexp(x, bits)), most));
}

void add_transform(const CFrontEnd& options, CFrontEndTables& tables) {
  constexpr double kTurn = 2 * std::numbers::pi;
  tables.transform = static_cast<std::int32_t>(std::bit_ceil(static_cast<std::uint64_t>(options.window)));
  for (std::int64_t t = 0; t <= options.window / 2; ++t)
    tables.hann.push_back(fixed<std::int32_t>(
        0.5 - 0.5 * std::cos(kTurn * static_cast<double>(t) / static_cast<double>(options.window)), 30));
  for (std::int32_t k = 0; k <= tables.transform / 4; ++k)
    tables.sines.push_back(fixed<std::int32_t>(std::sin(kTurn * k / tables.transform), 30));
  for (int k = 0; k <= 64; ++k) tables.logarithms.push_back(fixed<std::int32_t>(std::log2(1 + k / 64.0), 16));
  tables.least = fixed<std::int32_t>(std::log2(kLeastPower), 16);
}

/// The weights of all triangles use 15 bits; what is not 1 of their heights is left to the logarithm.
void add_bands(const CFrontEnd& options, CFrontEndTables& tables) {
  const double low = mel_of(options.low_hz, options.slaney), high = mel_of(options.high_hz, options.slaney);
  const auto corner = [&](std::int64_t k) {
    return hertz_of(low + (high - low) * static_cast<double>(k) / static_cast<double>(options.bands + 1),
                    options.slaney);
  };
  for (std::int64_t b = 0; b < options.bands; ++b) {
    const double left = corner(b), middle = corner(b + 1), right = corner(b + 2);
    std::uint16_t first = 0, count = 0;
    for (std::int32_t k = 0; k <= tables.transform / 2; ++k) {
      const double hertz = static_cast<double>(k) * static_cast<double>(options.rate) / tables.transform;
      const double weight = std::min((hertz - left) / (middle - left), (right - hertz) / (right - middle));
      if (weight <= 0) continue;
      if (count++ == 0) first = static_cast<std::uint16_t>(k);
      tables.triangles.push_back(fixed<std::uint16_t>(weight, 15));
    }
    if (options.slaney) tables.heights.push_back(fixed<std::int32_t>(std::log2(2 / (right - left)), 16));
    tables.first_bins.push_back(first);
    tables.bin_counts.push_back(count);
  }
  if (tables.triangles.empty())
    fail("C source: no frequency of a window of ", counted(options.window, "sample"),
         " lies in the bands of the front end");
}

/// sqrt(2 / bands), the factor of all cosines but the first, is left to the multipliers.
void add_cosines(const CFrontEnd& options, CFrontEndTables& tables) {
  for (std::int64_t c = 0; c < options.coefficients; ++c)
    for (std::int64_t b = 0; b < options.bands; ++b)
      tables.cosines.push_back(
          fixed<std::int16_t>(std::cos(std::numbers::pi * static_cast<double>(c) * (static_cast<double>(b) + 0.5) /
                                       static_cast<double>(options.bands)),
                              14));
}

/// integer = (number - mean) / (deviation * scale) + zero point and 1/2, rounded down, where a number is a logarithm to
/// base 2, or a sum of such, of 2^16, or a sample of 2^15.
void add_grid(const CFrontEnd& options, const integer::Model& model, CFrontEndTables& tables) {
  const integer::Grid& grid = model.tensor(model.input).grid;
  std::vector<double> factors, offsets;
  for (std::size_t c = 0; c < static_cast<std::size_t>(options.numbers()); ++c) {
    const double mean = model.input_standard ? double{model.input_standard->mean[c]} : 0;
    const double step = (model.input_standard ? double{model.input_standard->deviation[c]} : 1) * double{grid.scale};
    const double norm =
        options.coefficients == 0 ? 1 : std::sqrt((c == 0 ? 1.0 : 2.0) / static_cast<double>(options.bands));
    factors.push_back(options.is_raw() ? std::ldexp(1 / step, -15) : std::ldexp(std::numbers::ln2 * norm / step, -16));
    offsets.push_back(0.5 + grid.zero_point - mean / step);
  }
  const auto fits = [&](int shift) {
    return std::ranges::all_of(factors, [&](double factor) { return std::ldexp(factor, shift) < 0x1p28; }) &&
           std::ranges::all_of(offsets, [&](double offset) { return std::ldexp(std::abs(offset), shift) < 0x1p60; });
  };
  if (!fits(0)) fail("C source: the deviations of the front end's numbers are too small for integers");
  while (tables.shift < 60 && fits(tables.shift + 1)) ++tables.shift;
  for (const double factor : factors) tables.multipliers.push_back(fixed<std::int32_t>(factor, tables.shift));
  for (const double offset : offsets) tables.offsets.push_back(fixed<std::int64_t>(offset, tables.shift));
  tables.most = grid.quant_max();
}

std::string_view sound_text(std::string_view file) {
  return std::ranges::find(kSoundTexts, file, &std::pair<std::string_view, std::string_view>::first)->second;
}

/// What goes between the samples and the class, or the numbers.
std::string signature_of_run(const integer::Model& model, const std::string& prefix) {
  return concat(model.task.empty() ? "int " : "void ", prefix, "_run_sound(const int16_t *samples, uint8_t *output)");
}

constexpr std::string_view kStep = R"c(
void @_step(const int16_t *samples, uint8_t *numbers) {
  sound_numbers(&sound_tables, samples, sound_points, sound_logs, numbers);
}
)c";

constexpr std::string_view kFeatures = R"c(
void @_features(const int16_t *samples, uint8_t *input) {
  for (int32_t step = 0; step < #_STEPS; ++step) @_step(samples + step * #_STRIDE, input + step * #_STEP_SIZE);
}
)c";

constexpr std::string_view kSelfTest = R"c(
int @_sound_self_test(void) {
  static int16_t window[#_WINDOW];
  uint8_t numbers[#_STEP_SIZE];
  for (int32_t step = 0; step < #_STEPS; ++step) {
    for (int32_t t = 0; t < #_WINDOW; ++t)
      window[t] = test_sample((uint32_t)(step * #_STRIDE + t), #_SAMPLES);
    @_step(window, numbers);
    if (memcmp(numbers, expected_numbers + step * #_STEP_SIZE, sizeof numbers) != 0) return (int)(step + 1);
  }
  return 0;
}
)c";

/// PREFIX_step() and what it needs.
std::string step_of_bands(const FixedFrontEnd& end, const std::string& prefix, const std::string& macro) {
  const CFrontEnd& options = end.options();
  const CFrontEndTables& tables = end.tables();
  std::string text = concat(sound_text("steps.c"), "\n");
  append_array(text, "int32_t", "sound_hann", tables.hann);
  append_array(text, "int32_t", "sound_sines", tables.sines);
  append_array(text, "int32_t", "sound_logarithms", tables.logarithms);
  append_array(text, "uint16_t", "sound_first_bins", tables.first_bins);
  append_array(text, "uint16_t", "sound_bin_counts", tables.bin_counts);
  append_array(text, "uint16_t", "sound_triangles", tables.triangles);
  const char* heights = tables.heights.empty() ? "NULL" : "sound_heights";
  if (!tables.heights.empty()) append_array(text, "int32_t", heights, tables.heights);
  if (!tables.cosines.empty()) append_array(text, "int16_t", "sound_cosines", tables.cosines);
  append_array(text, "int32_t", "sound_multipliers", tables.multipliers);
  append_array(text, "int64_t", "sound_offsets", tables.offsets);
  return text +
         concat("static const struct front_end sound_tables = {", options.window, ", ", tables.transform, ", ",
                options.bands, ", ", options.coefficients,
                ", sound_hann, sound_sines, sound_logarithms,\n  sound_first_bins, sound_bin_counts, sound_triangles, ",
                heights, ", ", tables.cosines.empty() ? "NULL" : "sound_cosines", ", ", tables.least,
                ", sound_multipliers, sound_offsets, ", tables.shift, ", ", tables.most,
                "};\nstatic int32_t sound_points[", tables.transform, "], sound_logs[", options.bands, "];\n",
                with_names(kStep, prefix, macro));
}

/// The same of raw samples.
std::string raw_step(const FixedFrontEnd& end, const std::string& prefix) {
  const CFrontEndTables& tables = end.tables();
  return concat(sound_text("raw.c"), "\nvoid ", prefix, "_step(const int16_t *samples, uint8_t *numbers) {\n",
                "  numbers[0] = sound_number(samples[0], ", tables.multipliers[0], ", ", tables.offsets[0], ", ",
                tables.shift, ", ", tables.most, ");\n}\n");
}

}  // namespace

std::int64_t CFrontEndTables::bytes() const {
  if (transform == 0) return 0;
  constexpr std::int64_t kStruct = 17 * 4;
  return 4 * std::ssize(hann) + 4 * std::ssize(sines) + 4 * std::ssize(logarithms) + 2 * std::ssize(first_bins) +
         2 * std::ssize(bin_counts) + 2 * std::ssize(triangles) + 4 * std::ssize(heights) + 2 * std::ssize(cosines) +
         4 * std::ssize(multipliers) + 8 * std::ssize(offsets) + kStruct;
}

FixedFrontEnd::FixedFrontEnd(const CFrontEnd& options, const integer::Model& model) : options_(options) {
  const integer::TensorInfo& input = model.tensor(model.input);
  if (input.shape != Shape{options.steps, options.numbers()})
    fail("C source: the front end makes ", Shape{options.steps, options.numbers()}, ", the model takes ", input.shape);
  const std::int64_t least = options.is_raw() ? 1 : 3, most = options.is_raw() ? 1 : kLongestWindow;
  if (options.window < least || options.window > most)
    fail("C source: the front end's windows have ", options.window, " samples; ", least, " to ", most, " are possible");
  add_grid(options, model, tables_);
  if (options.is_raw()) return;
  add_transform(options, tables_);
  add_bands(options, tables_);
  add_cosines(options, tables_);
}

std::vector<std::uint8_t> FixedFrontEnd::features(std::span<const std::int16_t> samples) const {
  if (std::ssize(samples) != options_.samples())
    fail("the front end takes ", counted(options_.samples(), "sample"), ", got ", samples.size());
  std::vector<std::uint8_t> result(static_cast<std::size_t>(options_.steps * options_.numbers()));
  const auto numbers = static_cast<std::size_t>(options_.numbers()), stride = static_cast<std::size_t>(options_.stride);
  if (options_.is_raw()) {
    for (std::size_t step = 0; step < result.size(); ++step)
      result[step] =
          sound_number(samples[step * stride], tables_.multipliers[0], tables_.offsets[0], tables_.shift, tables_.most);
    return result;
  }
  const front_end end = {.window = static_cast<std::int32_t>(options_.window),
                         .transform = tables_.transform,
                         .bands = static_cast<std::int32_t>(options_.bands),
                         .coefficients = static_cast<std::int32_t>(options_.coefficients),
                         .hann = tables_.hann.data(),
                         .sines = tables_.sines.data(),
                         .logarithms = tables_.logarithms.data(),
                         .first_bins = tables_.first_bins.data(),
                         .bin_counts = tables_.bin_counts.data(),
                         .triangles = tables_.triangles.data(),
                         .heights = tables_.heights.empty() ? nullptr : tables_.heights.data(),
                         .cosines = tables_.cosines.data(),
                         .least = tables_.least,
                         .multipliers = tables_.multipliers.data(),
                         .offsets = tables_.offsets.data(),
                         .shift = tables_.shift,
                         .most = tables_.most};
  std::vector<std::int32_t> points(static_cast<std::size_t>(tables_.transform));
  std::vector<std::int32_t> logs(static_cast<std::size_t>(options_.bands));
  for (std::size_t step = 0; step < static_cast<std::size_t>(options_.steps); ++step)
    sound_numbers(&end, samples.data() + step * stride, points.data(), logs.data(), result.data() + step * numbers);
  return result;
}

std::vector<std::int16_t> FixedFrontEnd::test_sound() const {
  const auto count = static_cast<std::uint32_t>(options_.samples());
  std::vector<std::int16_t> samples;
  for (std::uint32_t i = 0; i < count; ++i) samples.push_back(test_sample(i, count));
  return samples;
}

std::string c_declarations_of_sound(const FixedFrontEnd& end, const integer::Model& model, const std::string& prefix,
                                    const std::string& macro) {
  const CFrontEnd& options = end.options();
  const auto size = [&](std::string_view name, std::int64_t value, std::string_view meaning) {
    return concat("#define ", macro, "_", name, " ", value, " /* ", meaning, " */\n");
  };
  return concat(
      "/* The model was trained on sounds: ",
      options.is_raw()           ? "standardised samples"
      : options.coefficients > 0 ? "MFCC"
                                 : "logarithms of mel bands",
      ", which these functions make of 16-bit samples of one channel, in\n   integers alone.",
      options.is_raw() ? "" : concat(" Working memory is static, ", end.scratch(), " bytes: one call at a time."),
      " */\n", size("SAMPLE_RATE", options.rate, "samples a second"), size("SAMPLES", options.samples(), "of an input"),
      size("WINDOW", options.window, "samples of a step"), size("STRIDE", options.stride, "samples between two steps"),
      size("STEPS", options.steps, "of an input"), size("STEP_SIZE", options.numbers(), "integers of a step"), "\n",
      "/* A step of the input, of ", macro, "_WINDOW samples: for sound that is still coming in. */\nvoid ", prefix,
      "_step(const int16_t *samples, uint8_t *numbers);\n/* The whole input, of ", macro, "_SAMPLES. */\nvoid ", prefix,
      "_features(const int16_t *samples, uint8_t *input);\n/* ", prefix, "_features, then ", prefix,
      "_run: from samples to ", model.task.empty() ? "the class" : "the outputs", ", with a static input of ", macro,
      "_INPUT_SIZE\n   bytes. */\n", signature_of_run(model, prefix), ";\n",
      "/* The front end on a sound that it draws: 0, or the number (from 1) of the first step that is wrong. ", macro,
      "_NO_SELF_TEST\n   leaves it out. */\nint ", prefix, "_sound_self_test(void);\n\n");
}

std::string c_source_of_sound(const FixedFrontEnd& end, const integer::Model& model, const std::string& prefix,
                              const std::string& macro) {
  return concat("\n", end.options().is_raw() ? raw_step(end, prefix) : step_of_bands(end, prefix, macro),
                with_names(kFeatures, prefix, macro), "\n", signature_of_run(model, prefix),
                " {\n  static uint8_t input[", macro, "_INPUT_SIZE];\n  ", prefix, "_features(samples, input);\n  ",
                model.task.empty() ? "return " : "", prefix, "_run(input, output);\n}\n");
}

std::string c_self_test_of_sound(const FixedFrontEnd& end, const std::string& prefix, const std::string& macro) {
  std::string text = concat("\n#ifndef ", macro, "_NO_SELF_TEST\n", sound_text("test_sound.c"), "\n");
  append_array(text, "uint8_t", "expected_numbers", end.features(end.test_sound()));
  return text + with_names(kSelfTest, prefix, macro) + "#endif\n";
}

}  // namespace miniqat::exporters
