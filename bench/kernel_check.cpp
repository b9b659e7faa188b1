#include "bench/kernel_check.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

#include "bench/foreign_code.h"
#include "bench/operation.h"
#include "core/tensors/random.h"
#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"
#include "quantize/reference/fake_quant.h"

namespace miniqat::bench {
namespace {

bool same_float(float a, float b) {
  return std::isnan(a) ? std::isnan(b) : std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

/// All digits that tell it from its neighbours.
std::string float_text(float value) {
  return std::isnan(value) ? "nan" : formatted("%.9g", static_cast<double>(value));
}

std::string floats_text(std::span<const float> values, std::size_t first, std::size_t last) {
  std::string text;
  for (std::size_t i = first; i <= last; ++i) text += " " + float_text(values[i]);
  return text;
}

/// How far x is above the grid's begin: at ties between two numbers, a half.
std::string steps_text(float x, const quantize::Affine<float>& grid) {
  if (!(x >= grid.nudged_min && x <= grid.nudged_max) || grid.nudged_min == grid.nudged_max) return {};
  return concat(" (", float_text((x - grid.nudged_min) / grid.scale), " steps above nudged_min)");
}

/// A sum, and that of the magnitudes, to which its rounding is in proportion.
struct CheckedSum {
  double sum = 0;
  double magnitude = 0;

  void add(double value) {
    sum += value;
    magnitude += std::abs(value);
  }
  bool agrees(double other) const { return std::abs(sum - other) <= 1e-5 * magnitude; }
};

struct CheckedSums {
  CheckedSum below, above, inside;
};

using quantize::Affine;
using quantize::GridOptions;
using quantize::Range;
using Side = GuardedArray::Side;

/// On both sides of 0, on one, empty, and far from 1.
constexpr Range<float> kCheckRanges[] = {{-0.8f, 0.7f},    {0, 1},     {-1, 0},          {0, 0},
                                         {-3.3e-3f, 1.7f}, {-100, 37}, {-1e-20f, 2e-20f}};
constexpr std::int64_t kCheckSizes[] = {0,  1,  2,  3,  5,   7,   8,   9,   15,  16,   17,   31,  32,
                                        33, 63, 64, 65, 100, 127, 129, 511, 513, 1023, 1025, 4099};

/// A number that is likely to be wrong.
float special_number(const Affine<float>& grid, const GridOptions& options, Random& random) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kMost = std::numeric_limits<float>::max();
  const float tie = grid.nudged_min + (static_cast<float>(random.below(1u << options.bits)) + 0.5f) * grid.scale;
  const float specials[] = {std::numeric_limits<float>::quiet_NaN(),
                            kInfinity,
                            -kInfinity,
                            kMost,
                            -kMost,
                            0.0f,
                            -0.0f,
                            1e-42f,
                            -1e-42f,
                            grid.nudged_min,
                            grid.nudged_max,
                            std::nextafter(grid.nudged_min, -kInfinity),
                            std::nextafter(grid.nudged_max, kInfinity),
                            tie,
                            tie,
                            std::nextafter(tie, kInfinity),
                            std::nextafter(tie, -kInfinity)};
  return specials[random.below(std::size(specials))];
}

/// One tensor on which a kernel is compared with the reference.
struct CheckCase {
  GridOptions options;
  std::int64_t channels = 1;
  std::int64_t n = 0;

  /// "4 bits, narrow range, 3 channels, 17 elements".
  std::string text() const {
    return concat(options.bits, " bits", options.narrow_range ? ", narrow range" : "",
                  options.symmetric ? ", symmetric" : "", options.power_of_two ? ", scale a power of two" : "", ", ",
                  counted(channels, "channel"), ", ", counted(n, "element"));
  }
};

/// The grids and numbers of a case, the same at every call.
struct CheckInput {
  explicit CheckInput(const CheckCase& what) {
    Random random(mix(mix(static_cast<std::uint64_t>(what.n), static_cast<std::uint64_t>(what.channels)),
                      static_cast<std::uint64_t>(what.options.bits) * 8 + (what.options.narrow_range ? 4 : 0) +
                          (what.options.symmetric ? 2 : 0) + (what.options.power_of_two ? 1 : 0)));
    const std::uint64_t first = random.below(std::size(kCheckRanges));
    for (std::int64_t c = 0; c < what.channels; ++c) {
      const Range<float>& range = kCheckRanges[(first + static_cast<std::uint64_t>(c)) % std::size(kCheckRanges)];
      grids.push_back(quantize::grid_of(range, what.options));
    }
    plugin_grids = bench::plugin_grids(grids);
    for (std::int64_t i = 0; i < what.n; ++i) {
      const Affine<float>& grid = grids[static_cast<std::size_t>(i % what.channels)];
      const float width = grid.nudged_max - grid.nudged_min;
      const float usual = grid.nudged_min + random.uniform(-0.2f, 1.2f) * (width > 0 ? width : 1);
      x.push_back(random.below(3) == 0 ? special_number(grid, what.options, random) : usual);
      dy.push_back(random.uniform(-1, 1));
    }
  }

  std::vector<Affine<float>> grids;
  std::vector<fake_quant_grid> plugin_grids;
  std::vector<float> x;
  /// Finite.
  std::vector<float> dy;
};

/// All that kernel_check.h promises.
std::vector<CheckCase> check_cases() {
  std::vector<CheckCase> cases;
  for (const int bits : {2, 3, 4, 5, 6, 7, 8, 16}) {
    const GridOptions grids[] = {{.bits = bits},
                                 {.bits = bits, .narrow_range = true},
                                 {.bits = bits, .symmetric = true},
                                 {.bits = bits, .power_of_two = true}};
    for (const GridOptions& options : grids)
      for (const std::int64_t channels : {1, 3, 16, 33})
        for (const std::int64_t n : kCheckSizes) cases.push_back({options, channels, n});
  }
  // Long enough for every loop of a kernel that goes in steps of thousands.
  for (const std::int64_t channels : {1, 64, 1000}) cases.push_back({{.bits = 8}, channels, 70'001});
  return cases;
}

constexpr std::int64_t kMostElements = 70'001;
constexpr std::int64_t kMostChannels = 1000;
/// Nothing that a right kernel would give.
constexpr float kUntouched = -12345.0f;

/// The functions of a kernel on one tensor after the other. Throws Error at the first difference.
class KernelCheck {
 public:
  explicit KernelCheck(const fake_quant_kernel& kernel) : kernel_(kernel) {}

  void run(const CheckCase& what) {
    const CheckInput input(what);
    const auto n = static_cast<std::size_t>(what.n);
    expected_.resize(n);
    passed_.resize(n);
    quantize::reference::fake_quant_forward<float>(input.x, input.grids, expected_.data());
    quantize::reference::fake_quant_backward<float>(input.x, input.dy.data(), input.grids, passed_.data(), nullptr,
                                                    nullptr);
    for (const Side side : {Side::kEnd, Side::kBegin})
      for (const bool in_place : {false, true}) {
        where_ = concat(what.text(), in_place ? ", in place" : "");
        if (kernel_.forward != nullptr) check_forward(input, side, in_place);
        if (kernel_.forward_mask != nullptr) check_mask(input, side, in_place);
        if (kernel_.backward_learned != nullptr) check_learned(input, side, in_place);
        if (kernel_.min_max != nullptr && !in_place) check_min_max(input, side);
      }
  }

 private:
  void begin(const char* function) {
    step_ = concat(function, ", ", where_);
    trial_step(step_);
  }
  void require_same(const std::string& fault) const {
    if (!fault.empty()) fail(step_, ": ", fault);
  }
  void require_no_damage() const {
    for (const GuardedArray* array : {&from_, &to_, &gradient_, &mask_, &grids_, &low_, &high_, &sums_})
      if (const std::string damage = array->damage(); !damage.empty()) fail(step_, ": ", damage);
  }
  /// Calls a function of the kernel.
  template <class Call>
  void call(const Call& function) const {
    const ControlWatch watch;
    function();
    if (watch.put_back()) fail(step_, ": ", ControlWatch::kFault);
    require_no_damage();
  }
  /// Arrays that the function may not change.
  template <class Element>
  void require_kept(std::span<const Element> before, const Element* now, const char* name) const {
    if (!before.empty() && std::memcmp(before.data(), now, before.size_bytes()) != 0)
      fail(step_, ": ", name, " changed");
  }
  void require_kept(const CheckInput& input, const fake_quant_grid* now) const {
    require_kept<fake_quant_grid>(input.plugin_grids, now, "grids are");
  }

  static std::span<float> filled(GuardedArray& array, std::span<const float> values, Side side) {
    const std::span<float> floats = array.floats(values.size(), side);
    std::ranges::copy(values, floats.begin());
    return floats;
  }
  std::span<float> untouched(GuardedArray& array, std::size_t count, Side side) {
    const std::span<float> floats = array.floats(count, side);
    std::ranges::fill(floats, kUntouched);
    return floats;
  }
  const fake_quant_grid* given_grids(const CheckInput& input, Side side) {
    const std::size_t bytes = input.plugin_grids.size() * sizeof(fake_quant_grid);
    void* const memory = grids_.take(bytes, side);
    std::memcpy(memory, input.plugin_grids.data(), bytes);
    return static_cast<const fake_quant_grid*>(memory);
  }
  static std::int64_t channels_of(const CheckInput& input) { return std::ssize(input.grids); }

  void check_forward(const CheckInput& input, Side side, bool in_place) {
    begin("forward");
    const std::span<float> x = filled(from_, input.x, side);
    const std::span<float> y = in_place ? x : untouched(to_, x.size(), side);
    const fake_quant_grid* const grids = given_grids(input, side);
    call([&] { kernel_.forward(x.data(), y.data(), std::ssize(x), grids, channels_of(input)); });
    if (!in_place) require_kept<float>(input.x, x.data(), "x is");
    require_kept(input, grids);
    require_same(difference({input.x, expected_, y, input.grids}));
  }

  void check_mask(const CheckInput& input, Side side, bool in_place) {
    begin("forward_mask");
    const std::span<float> x = filled(from_, input.x, side);
    const std::span<float> y = in_place ? x : untouched(to_, x.size(), side);
    void* const mask = mask_.take((x.size() + 127) / 64 * 64, side);
    const fake_quant_grid* const grids = given_grids(input, side);
    call([&] { kernel_.forward_mask(x.data(), y.data(), std::ssize(x), grids, channels_of(input), mask); });
    require_kept(input, grids);
    require_same(difference({input.x, expected_, y, input.grids}));
    if (kernel_.backward_mask == nullptr) return;
    begin("backward_mask");
    const std::span<float> dy = filled(gradient_, input.dy, side);
    const std::span<float> dx = in_place ? dy : untouched(to_, dy.size(), side);
    call([&] { kernel_.backward_mask(dy.data(), dx.data(), std::ssize(dy), mask); });
    if (!in_place) require_kept<float>(input.dy, dy.data(), "dy is");
    require_same(difference({input.x, passed_, dx, input.grids}));
  }

  void check_learned(const CheckInput& input, Side side, bool in_place) {
    begin("backward_learned");
    const std::span<float> x = filled(from_, input.x, side), dy = filled(gradient_, input.dy, side);
    const std::span<float> dx = in_place ? dy : untouched(to_, dy.size(), side);
    const std::size_t channels = input.grids.size();
    auto* const sums = static_cast<fake_quant_sums*>(sums_.take(channels * sizeof(fake_quant_sums), side));
    const fake_quant_grid* const grids = given_grids(input, side);
    call([&] {
      kernel_.backward_learned(x.data(), dy.data(), dx.data(), std::ssize(x), grids, channels_of(input), sums);
    });
    require_kept<float>(input.x, x.data(), "x is");
    require_kept(input, grids);
    require_same(difference({input.x, passed_, dx, input.grids}));
    require_same(sums_difference(input.x, input.dy, input.grids, {sums, channels}));
  }

  void check_min_max(const CheckInput& input, Side side) {
    begin("min_max");
    const std::span<float> x = filled(from_, input.x, side);
    const std::size_t channels = input.grids.size();
    const std::span<float> low = untouched(low_, channels, side), high = untouched(high_, channels, side);
    int has_nan = 0;
    call([&] { has_nan = kernel_.min_max(x.data(), std::ssize(x), channels_of(input), low.data(), high.data()); });
    require_kept<float>(input.x, x.data(), "x is");
    std::vector<quantize::Range<float>> ranges(channels);
    const auto seen = quantize::reference::observe<float>(input.x, ranges);
    if ((has_nan != 0) != seen.has_nan)
      fail(step_, ": returns ", has_nan, ", but there is ", seen.has_nan ? "a" : "no", " NaN");
    for (std::size_t c = 0; c < channels; ++c)
      if (low[c] != seen.ranges[c].min || high[c] != seen.ranges[c].max)
        fail(step_, ": channel ", c, ": expected ", seen.ranges[c].min, " and ", seen.ranges[c].max, ", got ", low[c],
             " and ", high[c]);
  }

  fake_quant_kernel kernel_;
  GuardedArray from_{"x", kMostElements * sizeof(float)};
  GuardedArray to_{"the result", kMostElements * sizeof(float)};
  GuardedArray gradient_{"dy", kMostElements * sizeof(float)};
  GuardedArray mask_{"the mask", kMostElements + 128};
  GuardedArray grids_{"grids", kMostChannels * sizeof(fake_quant_grid)};
  GuardedArray low_{"min", kMostChannels * sizeof(float)};
  GuardedArray high_{"max", kMostChannels * sizeof(float)};
  GuardedArray sums_{"sums", kMostChannels * sizeof(fake_quant_sums)};
  std::vector<float> expected_, passed_;
  std::string where_, step_;
};

}  // namespace

std::string difference(const Comparison& all) {
  std::size_t i = 0;
  while (i < all.got.size() && same_float(all.got[i], all.expected[i])) ++i;
  if (i == all.got.size()) return {};
  constexpr std::size_t kAround = 2;
  const std::size_t first = i < kAround ? 0 : i - kAround, last = std::min(i + kAround, all.got.size() - 1);
  std::string text = concat("element ", i, " of ", all.got.size());
  if (all.grids.size() > 1) text += concat(" (channel ", i % all.grids.size(), ")");
  text += concat(": expected ", float_text(all.expected[i]), ", got ", float_text(all.got[i]),
                 " for x = ", float_text(all.x[i]),
                 all.grids.empty() ? "" : steps_text(all.x[i], all.grids[i % all.grids.size()]), "; elements ", first,
                 " to ", last, ": x", floats_text(all.x, first, last), ", expected",
                 floats_text(all.expected, first, last), ", got", floats_text(all.got, first, last));
  if (all.grids.empty()) return text;
  const quantize::Affine<float>& grid = all.grids[i % all.grids.size()];
  return text + concat("; grid: scale ", float_text(grid.scale), ", zero_point ", float_text(grid.zero_point),
                       ", quant_min ", float_text(grid.quant_min), ", nudged_min ", float_text(grid.nudged_min),
                       ", nudged_max ", float_text(grid.nudged_max));
}

std::string sums_difference(std::span<const float> x, std::span<const float> dy,
                            std::span<const quantize::Affine<float>> grids, std::span<const fake_quant_sums> got) {
  std::vector<CheckedSums> all(grids.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const quantize::Affine<float>& grid = grids[i % grids.size()];
    CheckedSums& sums = all[i % grids.size()];
    if (grid.empty()) continue;
    if (x[i] < grid.nudged_min)
      sums.below.add(dy[i]);
    else if (x[i] > grid.nudged_max)
      sums.above.add(dy[i]);
    else if (x[i] >= grid.nudged_min)
      sums.inside.add(double{dy[i]} * (quantize::fake_quantize(grid, x[i]) - x[i]));
  }
  for (std::size_t c = 0; c < grids.size(); ++c) {
    const auto& [below, above, inside] = all[c];
    if (below.agrees(got[c].below) && above.agrees(got[c].above) && inside.agrees(got[c].inside)) continue;
    return concat("sums of channel ", c, ": expected below ", below.sum, ", above ", above.sum, ", inside ", inside.sum,
                  ", got ", got[c].below, ", ", got[c].above, ", ", got[c].inside);
  }
  return {};
}

void require_right(const NamedKernel& kernel) {
  const std::string fault = run_trial([&] {
    // Threads do not survive the way into another process.
    set_thread_count(1);
    const ComputeScope computing;
    if (kernel.functions.set_threads != nullptr) kernel.functions.set_threads(1);
    KernelCheck check(kernel.functions);
    for (const CheckCase& what : check_cases()) check.run(what);
  });
  if (!fault.empty()) fail("kernel ", kernel.name, ": ", fault);
}

}  // namespace miniqat::bench
