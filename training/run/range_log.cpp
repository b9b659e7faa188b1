#include "training/run/range_log.h"

#include <charconv>

#include "core/text/json.h"
#include "quantize/quantizers.h"

namespace miniqat::training {
namespace {

/// 0.1f as a double has 17 digits.
double with_few_digits(float value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  double rounded = value;
  std::from_chars(text, end, rounded);
  return rounded;
}

}  // namespace

nlohmann::ordered_json ranges_json(const Graph& graph, const NamedTensors& variables) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const quantize::QuantizerRange& one : quantize::quantizer_ranges(graph, variables)) {
    const quantize::Range<float> range = one.extremes();
    json[one.quantizer] = {with_few_digits(range.min), with_few_digits(range.max)};
  }
  return json;
}

bool has_ranges(std::int64_t line) {
  constexpr std::int64_t kAll = 20;
  std::int64_t every = 1;
  while (line > kAll * every) every *= 2;
  return line % every == 0;
}

}  // namespace miniqat::training
