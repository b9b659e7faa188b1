#include <algorithm>
#include <string_view>

#include "core/text/error.h"
#include "exporters/c/front_end.h"
#include "exporters/c/sound_texts.h"
#include "exporters/c/text.h"

namespace miniqat::exporters {
namespace {

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
