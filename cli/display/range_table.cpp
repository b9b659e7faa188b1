#include "cli/display/range_table.h"

#include <algorithm>
#include <cstdio>

#include "cli/display/text_table.h"
#include "core/text/error.h"
#include "core/text/suggest.h"
#include "quantize/quantizers.h"

namespace miniqat::cli {
namespace {

std::string interval(const std::vector<quantize::Range<float>>& ranges) {
  const auto low = std::ranges::min_element(ranges, {}, &quantize::Range<float>::min);
  const auto high = std::ranges::max_element(ranges, {}, &quantize::Range<float>::max);
  char text[64];
  std::snprintf(text, sizeof text, "[%.5g, %.5g]", low->min, high->max);
  return text;
}

/// "8 bits, weights, narrow, 6 channels".
std::string grid_text(const quantize::FakeQuantAttributes& attributes, bool is_weights, std::size_t channels) {
  std::vector<std::string> words = {concat(attributes.bits, " bits"), is_weights ? "weights" : "activation"};
  std::ranges::copy(quantize::grid_words(attributes), std::back_inserter(words));
  if (channels > 1) words.push_back(concat(channels, " channels"));
  return joined(words);
}

/// "0.25", or "0.25 to 0.5" of several.
template <class Member>
std::string span_text(const std::vector<Affine<float>>& grids, Member member) {
  const auto [low, high] = std::ranges::minmax_element(grids, {}, member);
  char first[32], last[32];
  std::snprintf(first, sizeof first, "%.6g", (*low).*member);
  std::snprintf(last, sizeof last, "%.6g", (*high).*member);
  return std::string(first) == last ? first : concat(first, " to ", last);
}

}  // namespace

std::string range_table(std::span<const quantize::CalibratedRange> ranges) {
  std::vector<TableLine> lines = {{"quantizer", "grid", "values", "range"}};
  for (const quantize::CalibratedRange& one : ranges) {
    lines.push_back({one.quantizer, grid_text(one.attributes, one.is_weights, one.set.size()), interval(one.seen),
                     interval(one.set)});
  }
  return aligned(lines, lines.front().size());
}

std::string quantizer_table(std::span<const quantize::QuantizerRange> ranges) {
  std::vector<TableLine> lines = {{"quantizer", "grid", "range", "scale", "zero point"}};
  for (const quantize::QuantizerRange& one : ranges) {
    const std::vector<Affine<float>> grids = one.grids();
    lines.push_back({one.quantizer, grid_text(one.attributes, one.is_weights, grids.size()), interval(one.ranges),
                     span_text(grids, &Affine<float>::scale), span_text(grids, &Affine<float>::zero_point)});
  }
  return aligned(lines, lines.front().size());
}

}  // namespace miniqat::cli
