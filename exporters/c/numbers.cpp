#include "exporters/c/numbers.h"

#include <optional>
#include <string_view>
#include <vector>

#include "core/tensors/standard.h"
#include "core/text/error.h"
#include "exporters/c/text.h"

namespace miniqat::exporters {
namespace {

/// "const float net_input_mean[NET_INPUT_CHANNELS]"
std::string array_of(const std::string& prefix, const std::string& macro, bool of_input, std::string_view what) {
  return concat("const float ", prefix, of_input ? "_input_" : "_output_", what, "[", macro,
                of_input ? "_INPUT_CHANNELS]" : "_OUTPUT_SIZE]");
}

std::string declarations(const std::string& prefix, const std::string& macro, bool of_input) {
  return concat("extern ", array_of(prefix, macro, of_input, "mean"), ";\nextern ",
                array_of(prefix, macro, of_input, "std"), ";\n\n");
}

std::string definition(const std::string& head, const std::vector<float>& values) {
  std::string text = concat("\n", head, " = {");
  std::size_t line = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string number = float_constant(values[i]) + (i + 1 < values.size() ? "," : "};\n");
    const bool fits = i > 0 && text.size() - line + number.size() < 120;
    text += fits ? " " : "\n  ";
    if (!fits) line = text.size() - 2;
    text += number;
  }
  return text;
}

std::string definitions(const std::string& prefix, const std::string& macro, bool of_input, const Standard& standard) {
  return definition(array_of(prefix, macro, of_input, "mean"), standard.mean) +
         definition(array_of(prefix, macro, of_input, "std"), standard.deviation);
}

/// Operation by operation that of integer::quantize() behind Standard::standardised().
constexpr std::string_view kQuantize = R"c(
void @_quantize(const float *x, uint8_t *input) {
  const float least = (float)(0 - #_INPUT_ZERO_POINT) * #_INPUT_SCALE;
  const float most = (float)(#_INPUT_MAX - #_INPUT_ZERO_POINT) * #_INPUT_SCALE;
  for (int32_t i = 0; i < #_INPUT_SIZE; ++i) {
    const int32_t channel = i % #_INPUT_CHANNELS;
    const float real = (x[i] - @_input_mean[channel]) / @_input_std[channel];
    const float inside = real < least ? least : real > most ? most : real;
    int32_t integer = #_INPUT_ZERO_POINT; /* of NaN */
    if (inside >= least) integer = (int32_t)((inside - least) / #_INPUT_SCALE + 0.5f);
    input[i] = (uint8_t)(integer > #_INPUT_MAX ? #_INPUT_MAX : integer);
  }
}
)c";

/// The product is exact in double, so that no compiler can round it in another way.
constexpr std::string_view kDequantize = R"c(
void @_dequantize(const uint8_t *output, float *y) {
  for (int32_t i = 0; i < #_OUTPUT_SIZE; ++i) {
    const float real = (float)(output[i] - #_OUTPUT_ZERO_POINT) * #_OUTPUT_SCALE;
    y[i] = (float)((double)real * (double)@_output_std[i] + (double)@_output_mean[i]);
  }
}
)c";

std::int64_t floats_of(const std::optional<Standard>& standard) {
  return standard ? std::ssize(standard->mean) + std::ssize(standard->deviation) : 0;
}

}  // namespace

std::string c_declarations_of_numbers(const integer::Model& model, const std::string& prefix, const std::string& macro,
                                      bool with_input) {
  std::string text;
  if (model.input_standard && with_input)
    text += concat(
        "/* The model was trained on standardised numbers, (x - mean) / std, with a mean and a deviation for\n",
        "   each channel, the last axis. */\n#define ", macro, "_INPUT_CHANNELS ", model.input_standard->mean.size(),
        "\n", declarations(prefix, macro, true),
        with_names("/* #_INPUT_SIZE numbers in the units of the data as the input: standardised, then the nearest\n"
                   "   integers. NaN counts as the mean. */\n"
                   "void @_quantize(const float *x, uint8_t *input);\n\n",
                   prefix, macro));
  if (model.output_standard)
    text += concat("/* The outputs are standardised as well, each with its mean and deviation. */\n",
                   declarations(prefix, macro, false),
                   with_names("/* #_OUTPUT_SIZE outputs as numbers in the units of the data. */\n"
                              "void @_dequantize(const uint8_t *output, float *y);\n\n",
                              prefix, macro));
  return text;
}

std::string c_source_of_numbers(const integer::Model& model, const std::string& prefix, const std::string& macro,
                                bool with_input) {
  std::string text;
  if (model.input_standard && with_input)
    text += definitions(prefix, macro, true, *model.input_standard) + with_names(kQuantize, prefix, macro);
  if (model.output_standard)
    text += definitions(prefix, macro, false, *model.output_standard) + with_names(kDequantize, prefix, macro);
  return text;
}

std::int64_t c_constants_of_numbers(const integer::Model& model, bool with_input) {
  return static_cast<std::int64_t>(sizeof(float)) *
         ((with_input ? floats_of(model.input_standard) : 0) + floats_of(model.output_standard));
}

}  // namespace miniqat::exporters
