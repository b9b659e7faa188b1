#include "quantize/range_kind.h"

#include <array>
#include <cstddef>
#include <limits>
#include <string>

#include "core/text/error.h"

namespace miniqat::quantize {
namespace {

/// In RangeKind's order.
constexpr auto kKinds = std::to_array<RangeKindTraits>({
    {.name = "fixed", .text = "fixed range"},
    {.name = "last_value", .text = "last value", .observes = true},
    {.name = "moving_average", .text = "moving average", .observes = true, .counts_steps = true, .averages = true},
    {.name = "learned", .text = "learned range", .learned = true},
    {.name = "all_values", .text = "range of all values", .observes = true, .counts_steps = true},
});

struct RangeChoiceTraits {
  /// A value of --ranges, and what --help says of it.
  std::string_view name;
  std::string_view help;
  /// Ranges are learned up to so many bits.
  std::int64_t most_learned_bits = 0;
  /// The ranges of activations with more bits. (Weights follow their tensor.)
  RangeKind activations = RangeKind::kMovingAverage;
};

/// In RangeChoice's order.
constexpr auto kChoices = std::to_array<RangeChoiceTraits>({
    {.name = "observed", .help = "minimum and maximum, those of activations averaged"},
    {.name = "learned",
     .help = "trained by gradient, of weights symmetric",
     .most_learned_bits = std::numeric_limits<std::int64_t>::max()},
    {.name = "auto", .help = "learned at 4 bits and fewer", .most_learned_bits = kFewBits},
    {.name = "all-values",
     .help = "minimum and maximum, those of activations over all batches so far",
     .activations = RangeKind::kAllValues},
    {.name = "by-task",
     .help = "auto, and all-values instead of averages where the answers are numbers (regress, reconstruct)",
     .most_learned_bits = kFewBits,
     .activations = RangeKind::kAllValues},
});

template <class Row, std::size_t kRows>
constexpr std::array<std::string_view, kRows> names_in(const std::array<Row, kRows>& table) {
  std::array<std::string_view, kRows> names;
  for (std::size_t i = 0; i < kRows; ++i) names[i] = table[i].name;
  return names;
}

RangeKind range_of(RangeChoice choice, std::int64_t bits, RangeKind observed) {
  const bool learns = bits <= kChoices[static_cast<std::size_t>(choice)].most_learned_bits;
  return learns ? RangeKind::kLearned : observed;
}

}  // namespace

const RangeKindTraits& traits_of(RangeKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

std::span<const std::string_view> range_kind_names() {
  static constexpr auto kNames = names_in(kKinds);
  return kNames;
}

std::span<const std::string_view> names_of(RangeChoice) {
  static constexpr auto kNames = names_in(kChoices);
  return kNames;
}

const char* help_of_range_choices() {
  static const std::string kText = [] {
    std::string text;
    for (const RangeChoiceTraits& choice : kChoices)
      text += concat(text.empty() ? "" : "; ", choice.name, ": ", choice.help);
    return text;
  }();
  return kText.c_str();
}

std::span<const std::string_view> names_of(ScaleChoice) {
  static constexpr std::array<std::string_view, 2> kScales = {"any", "power-of-two"};
  return kScales;
}

bool depends_on_bits(RangeChoice choice) {
  return kChoices[static_cast<std::size_t>(choice)].most_learned_bits == kFewBits;
}

RangeKind weight_range(RangeChoice choice, std::int64_t bits) { return range_of(choice, bits, RangeKind::kLastValue); }

RangeKind activation_range(RangeChoice choice, std::int64_t bits) {
  return range_of(choice, bits, kChoices[static_cast<std::size_t>(choice)].activations);
}

}  // namespace miniqat::quantize
