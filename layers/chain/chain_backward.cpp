#include <algorithm>

#include "core/tensors/eigen.h"
#include "core/threads/parallel.h"
#include "layers/chain/chain.h"
#include "layers/chain/chain_kernels.h"
#include "layers/kernels/masks.h"

namespace miniqat::layers {
namespace {

/// One backward pass of a chain.
class Backward {
 public:
  Backward(const ChainParts& parts, const BackwardContext& context)
      : parts_(parts),
        context_(context),
        forward_(*context.forward),
        x_(forward_.input(0)),
        d_y_(context.d_outputs[0]),
        channels_(parts.has_vectors() ? x_.shape().channels() : 1),
        width_(ChannelRow::width(channels_)) {}

  void run() {
    if (parts_.trains_range()) train_range();
    if (parts_.pool) return through_pool();
    work_ = {.d_y = d_y_ == nullptr ? nullptr : d_y_->data<float>(),
             .n = x_.elements(),
             .width = width_,
             .d_x = gradient(0),
             .d_addend = parts_.addend_input < 0 ? nullptr : gradient(parts_.addend_input)};
    if (parts_.clamps || parts_.quantizes(forward_))
      work_.mask = reinterpret_cast<const std::uint32_t*>(forward_.saved[0]->data<std::int32_t>());
    if (parts_.normalises())
      normalisation_backward(*parts_.norm, context_, work_, scope_);
    else
      through_vectors();
  }

 private:
  float* gradient(int i) const {
    return context_.d_inputs[i] == nullptr ? nullptr : context_.d_inputs[i]->data<float>();
  }
  ConstVectorMap<float> filled(float value) {
    return vector_of(std::span<const float>(scope_.filled<float>(channels_, value)));
  }

  /// 1 where there is no such input.
  ConstVectorMap<float> factor(int input) { return input < 0 ? filled(1) : vector_of<float>(forward_.input(input)); }

  /// Where somebody asks for the gradient of that input.
  template <class Formula>
  void store(int input, const Formula& formula) {
    if (input >= 0 && context_.d_inputs[input] != nullptr) vector_of<float>(*context_.d_inputs[input]) = formula;
  }

  /// Before any other: d_x may be written over d_y.
  void train_range() {
    float *d_min = gradient(parts_.range_input), *d_max = gradient(parts_.range_input + 1);
    if (!parts_.quantizes(forward_) || d_y_ == nullptr) {
      for (float* end : {d_min, d_max})
        if (end != nullptr) *end = 0;
      return;
    }
    const Range<float> range = parts_.range(forward_);
    const Affine<float> grid = parts_.quantizer->grid(range);
    RangeSums sums = parts_.rounds_again() ? sums_of_rounding(grid) : kept_sums();
    sums.inside *= double{grid.scale};
    parts_.quantizer->range_gradients(range, sums, d_min, d_max);
  }

  RangeSums kept_sums() const {
    const auto* codes = reinterpret_cast<const std::int16_t*>(forward_.saved[1]->data<std::uint8_t>());
    return rounding_sums(d_y_->data<float>(), d_y_->elements(),
                         [&](std::int64_t first, std::int64_t, std::int16_t*) { return codes + first; });
  }

  /// The same sums, of x rounded once more.
  RangeSums sums_of_rounding(const Affine<float>& grid) {
    // An empty range has no gradient.
    if (grid.empty()) return {};
    std::optional<ChainMap> norm;
    if (parts_.normalises()) norm = saved_normalisation(*parts_.norm, forward_, scope_);
    const ChainForward work{.x = x_.data<float>(),
                            .addend = parts_.addend(forward_),
                            .n = x_.elements(),
                            .map = parts_.map(forward_, norm, scope_)};
    return rounding_sums(d_y_->data<float>(), work.n, [&](std::int64_t first, std::int64_t n, std::int16_t* codes) {
      alignas(64) float values[kRoundingPiece + 2 * kMaskBlock], rounded[kRoundingPiece];
      ChainForward piece = work;
      piece.y = values, piece.y_block = first / kMaskBlock;
      chain_forward(piece, piece.y_block, mask_blocks(first + n));
      const float* v = values + first % kMaskBlock;
      parts_.quantizer->quantize_piece(grid, v, rounded, n);
      rounding_codes(v, rounded, n, grid, codes);
      return codes;
    });
  }

  /// * vectors, + vector: one pass.
  void through_vectors() {
    const int first = parts_.scale_input, second = parts_.second_scale_input;
    const bool products = (first >= 0 && gradient(first) != nullptr) || (second >= 0 && gradient(second) != nullptr);
    const bool sums = products || (parts_.bias_input >= 0 && gradient(parts_.bias_input) != nullptr);
    if (first >= 0) {
      const ChainMap map = parts_.map(forward_, std::nullopt, scope_);
      work_.x = x_.data<float>();
      work_.shift = map.shift;
      work_.slope = map.scale;
    }
    const ChainTotals totals = chain_backward(work_, channels_, sums, products, scope_);
    store(parts_.bias_input, vector_of(totals.sums));
    store(first, vector_of(totals.products) * factor(second));
    store(second, vector_of(totals.products) * factor(first));
  }

  void through_pool() {
    const ChainPool pool = ChainPool::of(x_.shape(), parts_.pool->window);
    const std::uint8_t* winners = forward_.saved[0]->data<std::uint8_t>();
    if (float* d_bias = parts_.bias_input < 0 ? nullptr : gradient(parts_.bias_input)) sum_pooled(winners, d_bias);
    if (float* d_x = gradient(0)) unpool(pool, winners, d_x);
  }

  void sum_pooled(const std::uint8_t* winners, float* d_bias) {
    const std::int64_t n = d_y_->elements(), rows = (n + width_ - 1) / width_;
    const int parts = parallel_parts(n, kPointwiseGrain);
    ChannelSums sums(scope_, channels_, parts);
    parallel_shares(rows, parts, [&](std::int64_t part, std::int64_t begin, std::int64_t end) {
      ScratchScope scope;
      float* sum = scope.filled<float>(width_, 0.0f).data();
      for (std::int64_t row = begin; row < end; row += ChannelSums::kFlushRows) {
        add_passing(d_y_->data<float>(), winners, width_, row * width_,
                    std::min(n, std::min(end, row + ChannelSums::kFlushRows) * width_), sum);
        sums.flush(part, sum);
      }
    });
    sums.store(d_bias);
  }

  void unpool(const ChainPool& pool, const std::uint8_t* winners, float* d_x) {
    parallel_for(pool.n * pool.output_h(), std::max<std::int64_t>(1, kPointwiseGrain / pool.tile()),
                 [&](std::int64_t begin, std::int64_t end) { unpool_rows(pool, winners, d_x, begin, end); });
  }

  void unpool_rows(const ChainPool& pool, const std::uint8_t* winners, float* d_x, std::int64_t begin,
                   std::int64_t end) const {
    const std::int64_t tile = pool.tile(), pooled = pool.pooled();
    const std::int64_t left_over = pool.h % pool.window_h * pool.w * pool.channels;
    const float* d_y = d_y_->data<float>();
    for (std::int64_t i = begin; i < end; ++i) {
      float* to = d_x + pool.offset(i);
      if (pool.has_room_behind(i, end)) {
        unpool_window_row(pool, d_y + i * pooled, winners + i * pooled, to);
      } else {
        // Numbers behind the last row must not be read or written.
        ScratchScope scope;
        float* gradients = scope.filled<float>(pooled + kMaskLanes, 0.0f).data();
        std::uint8_t* taps = scope.filled<std::uint8_t>(pooled + kMaskLanes, 0).data();
        float* room = scope.take<float>(tile + kMaskLanes).data();
        std::copy_n(d_y + i * pooled, pooled, gradients);
        std::copy_n(winners + i * pooled, pooled, taps);
        unpool_window_row(pool, gradients, taps, room);
        std::copy_n(room, tile, to);
      }
      if ((i + 1) % pool.output_h() == 0) std::fill_n(to + tile, left_over, 0.0f);
    }
  }

  const ChainParts& parts_;
  const BackwardContext& context_;
  const ForwardContext& forward_;
  const Tensor& x_;
  const Tensor* d_y_;
  const std::int64_t channels_;
  const std::int64_t width_;

  ScratchScope scope_;
  ChainBackward work_;
};

}  // namespace

void Chain::backward(const BackwardContext& context) const { Backward(parts_, context).run(); }

}  // namespace miniqat::layers
