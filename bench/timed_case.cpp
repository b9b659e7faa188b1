#include "bench/timed_case.h"

#include <algorithm>
#include <numeric>

#include "bench/kernel_check.h"
#include "bench/roofline.h"
#include "core/tensors/dtype.h"
#include "core/tensors/random.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/threads/parallel.h"
#include "quantize/kernels/fake_quant_kernels.h"
#include "quantize/reference/fake_quant.h"

namespace miniqat::bench {
namespace {

using quantize::Affine;

/// A second thread costs what the first one needs for about this many elements.
constexpr std::int64_t kPieceGrain = 32768;
/// Room in the mask for each piece, beside a byte for each element.
constexpr std::int64_t kMaskSlack = 128;
constexpr std::int64_t kMostPieces = 1024;
constexpr std::size_t kAlignment = 64;

/// A part of a tensor that one thread works on.
struct Piece {
  std::int64_t index, from, count;
};

std::size_t bytes_of(std::int64_t elements) { return static_cast<std::size_t>(elements) * sizeof(float); }

/// A multiple of the alignment. The last piece has room for 64 bytes more than its elements, as each has.
std::size_t mask_bytes_of(std::int64_t elements, std::int64_t pieces) {
  const auto bytes = static_cast<std::size_t>(elements + 64 + (pieces - 1) * kMaskSlack);
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

std::span<float> taken(GuardedArray& array, std::int64_t elements) {
  void* const memory = array.take(bytes_of(elements), GuardedArray::Side::kEnd, kAlignment);
  return {static_cast<float*>(memory), static_cast<std::size_t>(elements)};
}

}  // namespace

BenchTensors::BenchTensors(std::int64_t elements)
    : from_("x", bytes_of(elements)),
      to_("the result", bytes_of(elements)),
      mask_("the mask", mask_bytes_of(elements, std::min(kMostPieces, elements / kPieceGrain + 1))) {
  from = taken(from_, elements);
  to = taken(to_, elements);
  const std::size_t mask_bytes = mask_bytes_of(elements, std::min(kMostPieces, elements / kPieceGrain + 1));
  mask_end = static_cast<std::byte*>(mask_.take(mask_bytes, GuardedArray::Side::kEnd, kAlignment)) + mask_bytes;
  Random random(1);
  for (float& value : from) value = random.uniform(-1, 1);
  std::ranges::fill(to, 0.0f);
}

std::string BenchTensors::damage() const {
  for (const GuardedArray* array : {&from_, &to_, &mask_})
    if (std::string text = array->damage(); !text.empty()) return text;
  Random random(1);
  const bool is_kept = std::ranges::all_of(from, [&](float value) { return value == random.uniform(-1, 1); });
  return is_kept ? "" : "x is changed";
}

TimedCase::TimedCase(BenchTensors& tensors, const BenchCase& what, const NamedKernel* kernel)
    : tensors_(tensors), what_(what), kernel_(kernel) {
  if (kernel_ == nullptr) return;
  const auto channels = static_cast<std::size_t>(what_.channels);
  // Narrower than the data, so that clamping and the mask have something to do.
  const quantize::GridOptions options = {.bits = what_.bits};
  for (std::int64_t c = 0; c < what_.channels; ++c)
    grids_.push_back(quantize::grid_of<float>({-0.8f, 0.7f + 0.001f * static_cast<float>(c % 64)}, options));
  plugin_grids_ = observed_ = plugin_grids(grids_);
  const auto pieces = static_cast<std::size_t>(thread_count());
  sums_.resize(channels);
  low_.resize(channels), high_.resize(channels);
  piece_sums_.resize(channels * pieces);
  piece_low_.resize(channels * pieces), piece_high_.resize(channels * pieces);
  if (what_.operation != Operation::kBackward) return;
  own_mask_memory_.emplace("the mask", mask_bytes());
  own_mask_ = static_cast<std::byte*>(own_mask_memory_->take(mask_bytes(), GuardedArray::Side::kEnd, kAlignment));
  const CrashNote note(text());
  if (kernel_->functions.set_threads != nullptr) kernel_->functions.set_threads(thread_count());
  forward_mask(own_mask_);
}

/// Pieces begin at channel 0 and at a whole line of the cache, in the mask, too.
std::int64_t TimedCase::piece_unit() const { return std::max<std::int64_t>(64, std::lcm(what_.channels, 64)); }

std::int64_t TimedCase::piece_count() const {
  const std::int64_t unit = piece_unit();
  return parallel_parts((what_.elements + unit - 1) / unit, std::max<std::int64_t>(1, kPieceGrain / unit));
}

std::size_t TimedCase::mask_bytes() const {
  const bool is_cut = kernel_->functions.set_threads == nullptr;
  return mask_bytes_of(what_.elements, is_cut ? piece_count() : 1);
}

int TimedCase::threads_used() const {
  if (kernel_ == nullptr) return parallel_parts(what_.elements, kPieceGrain);
  if (kernel_->functions.set_threads == nullptr) return static_cast<int>(piece_count());
  if (kernel_->name != kOurName) return thread_count();
  // Our sums are taken in whole parts of that size.
  if (what_.operation == Operation::kBackwardLearned)
    return static_cast<int>(std::clamp<std::int64_t>(what_.elements / kPieceGrain, 1, thread_count()));
  return parallel_parts(what_.elements, kPieceGrain);
}

/// Calls body(piece) for all pieces, in parallel; for one piece if the kernel has threads of its own. Notes a change of
/// the thread's switches, and takes it back.
template <class Body>
void TimedCase::in_pieces(const Body& body) const {
  const std::int64_t n = what_.elements;
  const auto watched = [&](const Piece& piece) {
    // For the workers: the calling thread has one as long as it has a CrashNote.
    thread_local const SignalStack stack;
    const ControlWatch watch;
    body(piece);
    if (watch.put_back()) changed_control_ = true;
  };
  if (kernel_->functions.set_threads != nullptr) return watched(Piece{0, 0, n});
  const std::int64_t unit = piece_unit();
  parallel_shares((n + unit - 1) / unit, piece_count(), [&](std::int64_t part, std::int64_t first, std::int64_t last) {
    watched(Piece{part, first * unit, std::min(n, last * unit) - first * unit});
  });
}

void TimedCase::forward(const float* x, float* y, const fake_quant_grid* grids) const {
  in_pieces([&](const Piece& piece) {
    kernel_->functions.forward(x + piece.from, y + piece.from, piece.count, grids, what_.channels);
  });
}

void TimedCase::forward_mask(std::byte* mask) const {
  const float* const x = tensors_.from.data();
  float* const y = tensors_.to.data();
  in_pieces([&](const Piece& piece) {
    kernel_->functions.forward_mask(x + piece.from, y + piece.from, piece.count, plugin_grids_.data(), what_.channels,
                                    mask + piece.from + piece.index * kMaskSlack);
  });
}

void TimedCase::backward() const {
  const float* const dy = tensors_.from.data();
  float* const dx = tensors_.to.data();
  in_pieces([&](const Piece& piece) {
    kernel_->functions.backward_mask(dy + piece.from, dx + piece.from, piece.count,
                                     own_mask_ + piece.from + piece.index * kMaskSlack);
  });
}

void TimedCase::backward_learned() {
  const float* const x = tensors_.from.data();
  float* const dx = tensors_.to.data();
  const auto channels = static_cast<std::size_t>(what_.channels);
  std::ranges::fill(piece_sums_, fake_quant_sums{});
  in_pieces([&](const Piece& piece) {
    kernel_->functions.backward_learned(x + piece.from, dx + piece.from, dx + piece.from, piece.count,
                                        plugin_grids_.data(), what_.channels,
                                        &piece_sums_[static_cast<std::size_t>(piece.index) * channels]);
  });
  std::ranges::fill(sums_, fake_quant_sums{});
  for (std::size_t i = 0; i < piece_sums_.size(); ++i) {
    fake_quant_sums& sum = sums_[i % channels];
    sum.below += piece_sums_[i].below;
    sum.above += piece_sums_[i].above;
    sum.inside += piece_sums_[i].inside;
  }
}

void TimedCase::observe_forward() {
  const float* const x = tensors_.from.data();
  const auto channels = static_cast<std::size_t>(what_.channels);
  std::ranges::fill(piece_low_, kInfinity);
  std::ranges::fill(piece_high_, -kInfinity);
  in_pieces([&](const Piece& piece) {
    const std::size_t at = static_cast<std::size_t>(piece.index) * channels;
    kernel_->functions.min_max(x + piece.from, piece.count, what_.channels, &piece_low_[at], &piece_high_[at]);
  });
  std::ranges::fill(low_, kInfinity);
  std::ranges::fill(high_, -kInfinity);
  for (std::size_t i = 0; i < piece_low_.size(); ++i) {
    low_[i % channels] = std::min(low_[i % channels], piece_low_[i]);
    high_[i % channels] = std::max(high_[i % channels], piece_high_[i]);
  }
  for (std::size_t c = 0; c < channels; ++c)
    observed_[c] = plugin_grid(quantize::grid_of<float>({low_[c], high_[c]}, {.bits = what_.bits}));
  forward(x, tensors_.to.data(), observed_.data());
}

void TimedCase::read() const {
  const float* const x = tensors_.from.data();
  parallel_for(what_.elements, kPieceGrain,
               [&](std::int64_t first, std::int64_t last) { read_floats(x + first, last - first); });
}

void TimedCase::run() {
  try {
    run_operation();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    fail(text(), ": threw ", quote(error.what()));
  } catch (...) {
    fail(text(), ": threw an exception");
  }
}

void TimedCase::run_operation() {
  if (kernel_ != nullptr && kernel_->functions.set_threads != nullptr) kernel_->functions.set_threads(thread_count());
  float *const from = tensors_.from.data(), *const to = tensors_.to.data();
  switch (what_.operation) {
    case Operation::kMemcpy:
      return quantize::copy_floats(from, to, what_.elements);
    case Operation::kRead:
      return read();
    case Operation::kForward:
      return forward(from, to, plugin_grids_.data());
    case Operation::kForwardInPlace:
      return forward(to, to, plugin_grids_.data());
    case Operation::kForwardMask:
      return forward_mask(tensors_.mask_end - mask_bytes());
    case Operation::kObserveForward:
      return observe_forward();
    case Operation::kBackward:
      return backward();
    case Operation::kBackwardLearned:
      return backward_learned();
  }
}

std::vector<float> TimedCase::expected(const std::vector<Affine<float>>& grids) const {
  const std::span<const float> x = tensors_.from;
  std::vector<float> result(x.begin(), x.end());
  const std::span<const Affine<float>> all(grids);
  if (what_.operation == Operation::kBackward || what_.operation == Operation::kBackwardLearned)
    quantize::reference::fake_quant_backward<float>(x, x.data(), all, result.data(), nullptr, nullptr);
  else if (!is_limit(what_.operation))
    quantize::reference::fake_quant_forward<float>(x, all, result.data());
  return result;
}

std::string TimedCase::text() const {
  return concat(kernel_ == nullptr ? "" : concat("kernel ", kernel_->name, ": "), what_.text(), ", ",
                counted(thread_count(), "thread"));
}

void TimedCase::verify(const std::string& when) {
  if (what_.operation == Operation::kRead) return;
  const std::span<const float> x = tensors_.from;
  const std::span<float> got = tensors_.to;
  const bool in_place = what_.operation == Operation::kForwardInPlace || what_.operation == Operation::kBackwardLearned;
  if (in_place)
    std::ranges::copy(x, got.begin());
  else
    std::ranges::fill(got, -9.0f);
  {
    const CrashNote note(text() + when);
    run();
  }
  std::string fault = changed_control_ ? ControlWatch::kFault : tensors_.damage();
  if (fault.empty() && own_mask_memory_) fault = own_mask_memory_->damage();
  if (!fault.empty()) fail(text(), when, ": ", fault);
  std::vector<Affine<float>> grids = grids_;
  if (what_.operation == Operation::kObserveForward) {
    std::vector<quantize::Range<float>> ranges(grids.size());
    const auto seen = quantize::reference::observe<float>(x, ranges);
    for (std::size_t c = 0; c < grids.size(); ++c)
      grids[c] = quantize::grid_of(seen.ranges[c], quantize::GridOptions{.bits = what_.bits});
  }
  const std::vector<float> right = expected(grids);
  fault = difference({x, right, got, grids});
  if (fault.empty() && what_.operation == Operation::kBackwardLearned) fault = sums_difference(x, x, grids, sums_);
  if (!fault.empty()) fail(text(), when, ": ", fault);
}

}  // namespace miniqat::bench
