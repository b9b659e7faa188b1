#include "cli/display/range_table.h"

#include <algorithm>
#include <cstdio>

#include "cli/display/text_table.h"
#include "core/error.h"
#include "core/suggest.h"
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
  std::vector<TableLine> lines = {{"quantizer", "grid", "values", "range"}};
  for (const quantize::CalibratedRange& one : ranges) {
    std::vector<std::string> words = {concat(one.attributes.bits, " bits"), one.is_weights ? "weights" : "activation"};
    std::ranges::copy(quantize::grid_words(one.attributes), std::back_inserter(words));
    if (one.set.size() > 1) words.push_back(concat(one.set.size(), " channels"));
    lines.push_back({one.quantizer, joined(words), interval(one.seen), interval(one.set)});
  }
  return aligned(lines, lines.front().size());
}

}  // namespace miniqat::cli
