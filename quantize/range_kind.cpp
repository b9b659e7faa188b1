#include "quantize/range_kind.h"

#include <array>
#include <cstddef>

namespace miniqat::quantize {
namespace {

/// In RangeKind's order.
constexpr auto kKinds = std::to_array<RangeKindTraits>({
    {.name = "fixed", .text = "fixed range"},
    {.name = "last_value", .text = "last value", .observes = true},
    {.name = "moving_average", .text = "moving average", .observes = true, .averages = true},
    {.name = "learned", .text = "learned range", .learned = true},
});

constexpr auto kNames = [] {
  std::array<std::string_view, kKinds.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kKinds[i].name;
  return names;
}();

bool learns(RangeChoice choice, std::int64_t bits) {
  return choice == RangeChoice::kLearned || (choice == RangeChoice::kAuto && bits <= kMostLearnedBits);
}

}  // namespace

const RangeKindTraits& traits_of(RangeKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

std::span<const std::string_view> range_kind_names() { return kNames; }

std::span<const std::string_view> names_of(RangeChoice) {
  static constexpr std::array<std::string_view, 3> kChoices = {"observed", "learned", "auto"};
  return kChoices;
}

std::span<const std::string_view> names_of(ScaleChoice) {
  static constexpr std::array<std::string_view, 2> kScales = {"any", "power-of-two"};
  return kScales;
}

RangeKind weight_range(RangeChoice choice, std::int64_t bits) {
  return learns(choice, bits) ? RangeKind::kLearned : RangeKind::kLastValue;
}

RangeKind activation_range(RangeChoice choice, std::int64_t bits) {
  return learns(choice, bits) ? RangeKind::kLearned : RangeKind::kMovingAverage;
}

}  // namespace miniqat::quantize
