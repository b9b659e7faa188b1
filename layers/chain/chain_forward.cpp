#include <algorithm>
#include <atomic>
#include <cfloat>
#include <cmath>
#include <limits>

#include "core/kernels/packed.h"
#include "core/threads/parallel.h"
#include "layers/chain/chain.h"
#include "layers/chain/chain_kernels.h"
#include "layers/kernels/column_statistics.h"

namespace miniqat::layers {
namespace {

/// Blocks that are computed and then rounded while they are in the first cache.
constexpr std::int64_t kPieceBlocks = 8;

/// One forward pass of a chain.
class Forward {
 public:
  Forward(const ChainParts& parts, const ForwardContext& context)
      : parts_(parts),
        context_(context),
        x_(context.input(0)),
        channels_(parts.has_vectors() ? x_.shape().channels() : 1),
        from_batch_(parts.uses_batch(context)),
        observes_(parts.observes_range() && context.training),
        quantizes_(parts.quantizes(context)) {}

  void run() {
    if (x_.elements() == 0) return;
    look_at_input();
    make_map();
    if (context_.outputs[0] == nullptr) return;
    // The range of a sum with another tensor is not known before the sum.
    const bool late_range = observes_ && parts_.addend_input >= 0;
    if (parts_.quantizer != nullptr && !late_range) choose_grid(observes_ ? range_of_map() : parts_.range(context_));
    if (parts_.keeps_rounding() && quantizes_ && !context_.saved.empty()) keep_rounding();
    if (late_range) {
      add_then_round();
    } else if (parts_.pool) {
      pool();
    } else {
      pass(x_.data<float>(), addend(), y(), map_, true);
    }
    // Bytes have no NaN: the tensor's is that of the scale.
    if (found_nan_) packed_grid().scale = std::numeric_limits<float>::quiet_NaN();
  }

 private:
  const float* addend() const { return parts_.addend(context_); }
  /// Null if y is only packed.
  float* y() const { return context_.output(0).data<float>(); }
  std::int64_t elements() const { return context_.output(0).elements(); }

  /// The first pass over x, if there has to be one.
  void look_at_input() {
    const std::int64_t rows = x_.elements() / channels_;
    const bool ranged = observes_ && parts_.addend_input < 0;
    const auto room = [&] { return scope_.take<float>(channels_); };
    if (ranged) least_ = room(), largest_ = room();
    if (from_batch_) {
      mean_ = room(), variance_ = room();
      column_moments(x_.data<float>(), rows, channels_, mean_.data(), variance_.data(), least_.data(), largest_.data());
      has_nan_ = std::ranges::any_of(mean_, [](float mean) { return std::isnan(mean); });
    } else if (ranged) {
      has_nan_ = column_ranges(x_.data<float>(), x_.elements(), channels_, least_.data(), largest_.data());
    }
  }

  void make_map() {
    std::optional<ChainMap> norm;
    if (parts_.normalises()) norm = normalisation(*parts_.norm, context_, {mean_, variance_}, scope_);
    map_ = parts_.map(context_, norm, scope_);
  }

  /// What the map makes of x: it is monotone in each channel, also as rounded.
  Range<float> range_of_map() {
    Range<float> range = {INFINITY, -INFINITY};
    for (std::int64_t c = 0; c < channels_; ++c)
      for (const float end : {map_.at(c, least_[c]), map_.at(c, largest_[c])}) {
        range = {std::min(range.min, end), std::max(range.max, end)};
        has_nan_ = has_nan_ || std::isnan(end);
      }
    return range;
  }

  /// The range is the quantizer's input or, in a run that observes, what was seen at the quantizer.
  void choose_grid(Range<float> range) {
    if (observes_) {
      Observation<float> observed{{&range, 1}, has_nan_};
      if (!context_.observed.empty()) leave_observation(observed, context_.observed.last(1));
      parts_.quantizer->stage_range(context_, parts_.range_input, observed);
    }
    grid_ = parts_.quantizer->grid(range);
    if (context_.packed != nullptr) packed_grid() = code_grid();
  }

  CodeGrid code_grid() const { return {grid_.scale, grid_.zero_point}; }
  CodeGrid& packed_grid() const { return packed_grids({.elements = elements()}, *context_.packed)[0]; }

  /// The range in which gradients pass: strictly between the clamp's ends (denormals count as 0) and not outside the
  /// grid. None where nothing stops them, not even a NaN.
  std::optional<std::pair<float, float>> passing() const {
    const bool has_grid = quantizes_ && !grid_.empty();
    if (!parts_.clamps && !has_grid) return std::nullopt;
    float low = -INFINITY, high = INFINITY;
    if (parts_.clamps) low = FLT_MIN, high = std::isinf(parts_.high) ? INFINITY : std::nextafter(parts_.high, 0.0f);
    if (!has_grid) return {{low, high}};
    if (std::isnan(grid_.nudged_min)) return {{NAN, NAN}};
    return {{std::max(low, grid_.nudged_min), std::min(high, grid_.nudged_max)}};
  }

  /// One pass from x to y, which may be null if it is only packed: the map and, with `finish`, the mask and the grid.
  void pass(const float* x, const float* addend, float* y, const ChainMap& map, bool finish) {
    ChainForward work{.x = x, .addend = addend, .y = y, .n = x_.elements(), .map = map};
    if (finish && !context_.saved.empty() && (parts_.clamps || quantizes_)) {
      const std::span<std::int32_t> mask = context_.saved[0]->values<std::int32_t>();
      if (const auto bounds = passing()) {
        work.mask = reinterpret_cast<std::uint32_t*>(mask.data());
        std::tie(work.pass_low, work.pass_high) = *bounds;
      } else {
        std::ranges::fill(mask, -1);
      }
    }
    parallel_for(mask_blocks(work.n), kPointwiseGrain / kMaskBlock, [&](std::int64_t begin, std::int64_t end) {
      alignas(64) float unwritten[kPieceBlocks * kMaskBlock];
      ChainForward own = work;
      for (std::int64_t block = begin; block < end; block += kPieceBlocks) {
        const std::int64_t last = std::min(end, block + kPieceBlocks);
        float* piece = y == nullptr ? unwritten : y + block * kMaskBlock;
        own.y = piece, own.y_block = block;
        chain_forward(own, block, last);
        if (finish && quantizes_)
          round_piece(piece, block * kMaskBlock, std::min(work.n, last * kMaskBlock) - block * kMaskBlock);
      }
    });
  }

  /// n elements of y from `first` on, at most kPieceBlocks, which are in `piece`.
  void round_piece(float* piece, std::int64_t first, std::int64_t n) {
    if (rounding_ == nullptr) {
      parts_.quantizer->quantize_piece(grid_, piece, piece, n);
    } else {
      alignas(64) float unrounded[kPieceBlocks * kMaskBlock];
      std::copy_n(piece, n, unrounded);
      parts_.quantizer->quantize_piece(grid_, unrounded, piece, n);
      encode(unrounded, piece, first, n);
    }
    keep_packed(piece, first, n);
  }

  void keep_rounding() {
    const std::span<std::uint8_t> bytes = context_.saved[1]->values<std::uint8_t>();
    // An empty range has no gradient.
    if (grid_.empty())
      std::ranges::fill(bytes, std::uint8_t{0});
    else
      rounding_ = reinterpret_cast<std::int16_t*>(bytes.data());
  }

  /// Keeps codes of the roundings of n elements from `first` on, which are `y` when rounded, for backward.
  void encode(const float* unrounded, const float* y, std::int64_t first, std::int64_t n) const {
    rounding_codes(unrounded, y, n, grid_, rounding_ + first);
  }

  /// n elements from `first` on, which are `y`, if the plan wants that.
  void keep_packed(const float* y, std::int64_t first, std::int64_t n) {
    if (context_.packed != nullptr && pack(y, n, code_grid(), context_.packed->data<std::uint8_t>() + first))
      found_nan_.store(true, std::memory_order_relaxed);
  }

  void add_then_round() {
    float* sum = y() != nullptr ? y() : scope_.take<float>(static_cast<std::size_t>(elements())).data();
    pass(x_.data<float>(), addend(), sum, map_, false);
    Range<float> range;
    has_nan_ = column_ranges(sum, x_.elements(), 1, &range.min, &range.max);
    choose_grid(range);
    // The next loops only set the mask and round. (The sum has been clamped already: clamping again changes nothing.)
    if (quantizes_ || parts_.clamps) pass(sum, nullptr, sum, {.low = parts_.low, .high = parts_.high}, true);
  }

  void pool() {
    const ChainPool pool = ChainPool::of(x_.shape(), parts_.pool->window);
    parallel_for(pool.n * pool.output_h(), std::max<std::int64_t>(1, kPointwiseGrain / pool.tile()),
                 [&](std::int64_t begin, std::int64_t end) { pool_rows(pool, begin, end); });
  }

  /// Rows of windows begin..end, some at a time: as many as fit into the first cache.
  void pool_rows(const ChainPool& pool, std::int64_t begin, std::int64_t end) {
    const auto bounds = passing();
    const auto [pass_low, pass_high] = bounds.value_or(std::pair(0.0f, 0.0f));
    const std::int64_t tile = pool.tile(), pooled = pool.pooled();
    const std::int64_t most = std::max<std::int64_t>(1, kPieceBlocks * kMaskBlock / tile);
    ScratchScope scope;
    float* values = scope.filled<float>(most * tile + kMaskLanes, 0.0f).data();
    float* taps = quantizes_ ? scope.filled<float>(most * tile + kMaskLanes, 0.0f).data() : values;
    float* largest = scope.take<float>(pooled + kMaskLanes).data();
    float* of_winners = rounding_ == nullptr ? nullptr : scope.take<float>(pooled + kMaskLanes).data();
    std::uint8_t* tap = scope.take<std::uint8_t>(pooled + kMaskLanes).data();
    std::uint8_t* winners = context_.saved.empty() ? nullptr : context_.saved[0]->data<std::uint8_t>();
    for (std::int64_t i = begin; i < end;) {
      const std::int64_t rows = std::min(most, pool.contiguous(i, end)), n = rows * tile;
      chain_forward({.x = x_.data<float>() + pool.offset(i), .y = values, .n = n, .map = map_}, 0, mask_blocks(n));
      if (quantizes_) parts_.quantizer->quantize_piece(grid_, values, taps, n);
      for (std::int64_t k = 0; k < rows; ++k, ++i) {
        const float *from = taps + k * tile, *unrounded = bounds ? values + k * tile : nullptr;
        float* to = y() == nullptr ? largest : y() + i * pooled;
        std::uint8_t* winner = winners == nullptr ? nullptr : winners + i * pooled;
        if (to != largest && pool.has_room_behind(i, end)) {
          pool_window_row(pool, from, unrounded, pass_low, pass_high, to, winner, of_winners);
        } else {
          // Numbers behind the last row must not be written.
          pool_window_row(pool, from, unrounded, pass_low, pass_high, largest, winner == nullptr ? nullptr : tap,
                          of_winners);
          if (to != largest) std::copy_n(largest, pooled, to);
          if (winner != nullptr) std::copy_n(tap, pooled, winner);
        }
        if (of_winners != nullptr) encode(of_winners, to, i * pooled, pooled);
        keep_packed(to, i * pooled, pooled);
      }
    }
  }

  const ChainParts& parts_;
  const ForwardContext& context_;
  const Tensor& x_;
  /// The length of the vectors; 1 without any.
  const std::int64_t channels_;
  const bool from_batch_;
  const bool observes_;
  const bool quantizes_;

  ScratchScope scope_;
  /// Statistics of x by channel; empty unless needed.
  std::span<float> mean_, variance_, least_, largest_;
  /// Whether there is a NaN in what is observed.
  bool has_nan_ = false;
  ChainMap map_;
  Affine<float> grid_;
  /// Null where there is no backward pass that wants them.
  std::int16_t* rounding_ = nullptr;
  /// While packing.
  std::atomic<bool> found_nan_ = false;
};

}  // namespace

void Chain::forward(const ForwardContext& context) const { Forward(parts_, context).run(); }

}  // namespace miniqat::layers
