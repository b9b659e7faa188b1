#include "cli/display/range_table.h"

#include <algorithm>
#include <cstdio>

#include "core/error.h"
#include "quantize/inspect/quantizer_text.h"

namespace miniqat::cli {
namespace {

std::string interval(const std::vector<quantize::Range<float>>& ranges) {
  const auto low = std::ranges::min_element(ranges, {}, &quantize::Range<float>::min);
  const auto high = std::ranges::max_element(ranges, {}, &quantize::Range<float>::max);
  char text[64];
  std::snprintf(text, sizeof text, "[%.5g, %.5g]", low->min, high->max);
  return text;
}

}  // namespace

std::string range_table(std::span<const quantize::CalibratedRange> ranges) {
  std::vector<std::vector<std::string>> lines = {{"quantizer", "grid", "values", "range"}};
  for (const quantize::CalibratedRange& one : ranges) {
    std::vector<std::string> words = {concat(one.attributes.bits, " bits"), one.is_weights ? "weights" : "activation"};
    std::ranges::copy(quantize::grid_words(one.attributes), std::back_inserter(words));
    if (one.set.size() > 1) words.push_back(concat(one.set.size(), " channels"));
    lines.push_back({one.quantizer, quantize::joined(words, ", "), interval(one.seen), interval(one.set)});
  }
  std::vector<std::size_t> widths(lines.front().size());
  for (const std::vector<std::string>& line : lines)
    for (std::size_t i = 0; i + 1 < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size() + 2);
  std::string text;
  for (const std::vector<std::string>& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i)
      text += line[i] + std::string(std::max(widths[i], line[i].size()) - line[i].size(), ' ');
    text += '\n';
  }
  return text;
}

}  // namespace miniqat::cli
