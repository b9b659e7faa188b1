#include <algorithm>

#include "core/eigen.h"
#include "core/parallel.h"
#include "layers/chain/chain.h"
#include "layers/chain/chain_kernels.h"
#include "layers/chain/chain_pool.h"
#include "layers/chain/chain_rounding.h"
#include "layers/kernels/column_parts.h"

namespace miniqat::layers {
namespace {

/// float32 sums run over at most about this many numbers a column, then go on in float64.
constexpr std::int64_t kFlushRows = 64;

/// Sums by channel of something that is added up in ChannelRows, by several threads.
class ChannelSums {
 public:
  ChannelSums(ScratchScope& scope, std::int64_t channels, int parts)
      : columns_{channels, ChannelRow::width(channels), parts}, totals_(scope.filled<double>(columns_.size(), 0.0)) {}

  /// Of one thread: adds a row of float sums to its totals and clears it.
  void flush(std::int64_t part, float* row) {
    double* total = totals_.data() + part * columns_.stride();
#pragma omp simd
    for (std::int64_t j = 0; j < columns_.width; ++j) total[j] += static_cast<double>(row[j]);
    std::fill_n(row, columns_.width, 0.0f);
  }

  double total(std::int64_t c) const {
    double sum = 0;
    columns_.for_each(c, [&](std::int64_t i, std::int64_t) { sum += totals_[i]; });
    return sum;
  }

 private:
  ColumnParts columns_;
  std::span<double> totals_;
};

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
    if (parts_.clamps || (parts_.quantizer != nullptr && forward_.quantizing))
      work_.mask = reinterpret_cast<const std::uint32_t*>(forward_.saved[0]->data<std::int32_t>());
    if (parts_.normalises())
      through_batch_norm();
    else
      through_vectors();
  }

 private:
  float* gradient(int i) const {
    return context_.d_inputs[i] == nullptr ? nullptr : context_.d_inputs[i]->data<float>();
  }
  VectorMap<float> vector() { return vector_of(scope_.take<float>(channels_)); }
  VectorMap<float> filled(float value) { return vector_of(scope_.filled<float>(channels_, value)); }

  /// 1 where there is no such input.
  VectorMap<float> factor(int input) { return input < 0 ? filled(1) : vector_of<float>(forward_.input(input)); }

  template <class Formula>
  const float* row(const Formula& formula) {
    VectorMap<float> values = vector();
    values = formula;
    return ChannelRow(scope_, {values.data(), static_cast<std::size_t>(channels_)}).data();
  }

  /// Sums in float32, 0 where there are none. (Float64 until here: over batches they get large.)
  VectorMap<float> totals(const std::optional<ChannelSums>& sums) {
    VectorMap<float> result = filled(0);
    for (std::int64_t c = 0; sums && c < channels_; ++c) result[c] = static_cast<float>(sums->total(c));
    return result;
  }

  /// Where somebody asks for the gradient of that input.
  template <class Formula>
  void store(int input, const Formula& formula) {
    if (input >= 0 && context_.d_inputs[input] != nullptr) vector_of<float>(*context_.d_inputs[input]) = formula;
  }

  /// Goes over all blocks; where there are sums to take, leaves them in sums_ and products_.
  void sweep(const ChainBackward& work, bool sums, bool products) {
    const std::int64_t blocks = mask_blocks(work.n);
    const int parts = parallel_parts(blocks, kPointwiseGrain / kMaskBlock);
    if (sums) sums_.emplace(scope_, channels_, parts);
    if (products) products_.emplace(scope_, channels_, parts);
    const std::int64_t chunk = std::max<std::int64_t>(1, kFlushRows * width_ / kMaskBlock);
    parallel_shares(blocks, parts, [&](std::int64_t part, std::int64_t begin, std::int64_t end) {
      ScratchScope scope;
      float* sum = sums ? scope.filled<float>(width_, 0.0f).data() : nullptr;
      float* product = products ? scope.filled<float>(width_, 0.0f).data() : nullptr;
      for (std::int64_t block = begin; block < end; block += chunk) {
        chain_backward(work, sum, product, block, std::min(end, block + chunk));
        if (sums) sums_->flush(part, sum);
        if (products) products_->flush(part, product);
      }
    });
  }

  /// Before any other: d_x may be written over d_y.
  void train_range() {
    const int at = parts_.range_input;
    float* const ends[] = {gradient(at), gradient(at + 1)};
    std::pair<float, float> gradients = {0, 0};
    if (forward_.quantizing && d_y_ != nullptr) {
      const auto* codes = reinterpret_cast<const std::int16_t*>(forward_.saved[1]->data<std::uint8_t>());
      const ChainRange range = {.min = *forward_.input(at).data<float>(), .max = *forward_.input(at + 1).data<float>()};
      gradients =
          parts_.quantizer->gradients_of_range(range, rounding_sums(d_y_->data<float>(), codes, d_y_->elements()));
    }
    if (ends[0] != nullptr) *ends[0] = gradients.first;
    if (ends[1] != nullptr) *ends[1] = gradients.second;
  }

  /// * vectors, + vector: one pass.
  void through_vectors() {
    const int first = parts_.scale_input, second = parts_.second_scale_input;
    const bool products = (first >= 0 && gradient(first) != nullptr) || (second >= 0 && gradient(second) != nullptr);
    const bool sums = products || (parts_.bias_input >= 0 && gradient(parts_.bias_input) != nullptr);
    if (first >= 0) {
      work_.x = x_.data<float>();
      work_.shift = row(filled(0));
      work_.slope = row(factor(first) * factor(second));
    }
    sweep(work_, sums, products);
    store(parts_.bias_input, totals(sums_));
    store(first, totals(products_) * factor(second));
    store(second, totals(products_) * factor(first));
  }

  /// The gradients that a batch norm's x gets, z = factor * x being what it normalises; layers/reference/batch_norm.h
  /// derives them.
  void through_batch_norm() {
    const int at = parts_.batch_norm_input;
    const bool from_batch = parts_.batch_norm.is_training && forward_.training && !forward_.frozen;
    const VectorMap<float> saved = vector_of<float>(*forward_.saved.back());
    const auto mean = saved.head(channels_), inverse_sigma = saved.tail(channels_);
    const auto gamma = factor(at), f = factor(parts_.scale_input);
    work_.x = x_.data<float>();
    work_.shift = row(mean);
    work_.slope = row(gamma * (f * inverse_sigma));
    const bool parameters = gradient(at) != nullptr || gradient(at + 1) != nullptr;
    // Gradients may reach the statistics alone, which only those of a batch pass on.
    const std::span<float> zeros =
        d_y_ == nullptr && !from_batch ? scope_.filled<float>(x_.elements(), 0.0f) : std::span<float>();
    if (!zeros.empty()) work_.d_y = zeros.data();
    if (!from_batch) {
      sweep(work_, parameters, parameters);
    } else if (d_y_ != nullptr) {
      // d_x depends on sums over all of d_y.
      ChainBackward looking = work_;
      looking.d_x = looking.d_addend = nullptr;
      sweep(looking, true, true);
    }
    if (!from_batch && !parameters) return;
    const VectorMap<float> d_beta = totals(sums_);
    VectorMap<float> d_gamma = totals(products_);
    if (products_) d_gamma *= f * inverse_sigma;
    store(at, d_gamma);
    store(at + 1, d_beta);
    if (!from_batch || (work_.d_x == nullptr && work_.d_addend == nullptr)) return;
    const std::int64_t rows = x_.elements() / channels_;
    const auto n = static_cast<float>(rows);
    const auto slope = gamma * inverse_sigma;
    const auto through_mean = (statistic_gradient(1) - slope * d_beta) / n;
    const auto through_variance = (2 * statistic_gradient(2) - slope * inverse_sigma * d_gamma) / n;
    work_.curve = row(through_variance * f * f);
    work_.constant = row(through_mean * f);
    sweep(work_, false, false);
  }

  VectorMap<float> statistic_gradient(int output) {
    const Tensor* d = context_.d_outputs[output];
    return d == nullptr ? filled(0) : vector_of<float>(*d);
  }

  void through_pool() {
    const ChainPool pool = ChainPool::of(x_.shape(), parts_.pool->window);
    const std::uint8_t* winners = forward_.saved[0]->data<std::uint8_t>();
    if (parts_.bias_input >= 0 && gradient(parts_.bias_input) != nullptr) sum_pooled(winners);
    if (float* d_x = gradient(0)) unpool(pool, winners, d_x);
  }

  void sum_pooled(const std::uint8_t* winners) {
    const std::int64_t n = d_y_->elements(), rows = (n + width_ - 1) / width_;
    const int parts = parallel_parts(n, kPointwiseGrain);
    sums_.emplace(scope_, channels_, parts);
    parallel_shares(rows, parts, [&](std::int64_t part, std::int64_t begin, std::int64_t end) {
      ScratchScope scope;
      float* sum = scope.filled<float>(width_, 0.0f).data();
      for (std::int64_t row = begin; row < end; row += kFlushRows) {
        add_passing(d_y_->data<float>(), winners, width_, row * width_,
                    std::min(n, std::min(end, row + kFlushRows) * width_), sum);
        sums_->flush(part, sum);
      }
    });
    store(parts_.bias_input, totals(sums_));
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
        // What lies behind the last row is not ours to read or to write to.
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
  std::optional<ChannelSums> sums_;
  std::optional<ChannelSums> products_;
};

}  // namespace

void Chain::backward(const BackwardContext& context) const { Backward(parts_, context).run(); }

}  // namespace miniqat::layers
