#include "datasets/decoding.h"

#include <chrono>
#include <utility>

#include "core/platform/interruption.h"

namespace miniqat::datasets {
namespace {

DecodeProgress decoding_listener;

class LoneDecoding : public SharedDecoding {
 public:
  int parts() const override { return 1; }
  int part() const override { return 0; }
  bool same(std::uint64_t) override { return true; }
  void spread(int, std::span<std::byte>) override {}
};

LoneDecoding alone;
SharedDecoding* decoders = &alone;

}  // namespace

void tell_of_decoding(DecodeProgress listener) { decoding_listener = std::move(listener); }

void decoding_went_on(std::int64_t done, std::int64_t all) {
  if (decoding_listener) decoding_listener(done, all);
}

SharedDecoding& lone_decoding() { return alone; }

void share_decoding(SharedDecoding& with) { decoders = &with; }

SharedDecoding& shared_decoding() { return *decoders; }

std::int64_t first_of_part(const SharedDecoding& with, int part, std::int64_t count) {
  return count * part / with.parts();
}

void put_together(SharedDecoding& with, Tensor& images) {
  const std::int64_t count = images.shape()[0];
  const std::size_t bytes = images.bytes() / static_cast<std::size_t>(count);
  for (int part = 0; part < with.parts(); ++part) {
    const std::int64_t first = first_of_part(with, part, count), end = first_of_part(with, part + 1, count);
    with.spread(part, {static_cast<std::byte*>(images.raw()) + bytes * static_cast<std::size_t>(first),
                       bytes * static_cast<std::size_t>(end - first)});
  }
}

DecodingBudget::Share::Share(DecodingBudget& budget, std::int64_t bytes) : budget_(budget), bytes_(bytes) {
  constexpr std::chrono::milliseconds kNap(50);
  std::unique_lock lock(budget.mutex_);
  while (!budget.room_.wait_for(lock, kNap, [&] { return budget.held_ == 0 || budget.held_ + bytes <= budget.bytes_; }))
    interruption_point();
  budget.held_ += bytes;
}

DecodingBudget::Share::~Share() {
  {
    const std::lock_guard lock(budget_.mutex_);
    budget_.held_ -= bytes_;
  }
  budget_.room_.notify_all();
}

DecodingBudget& decoding_budget() {
  static DecodingBudget budget(std::int64_t{3} << 28);
  return budget;
}

}  // namespace miniqat::datasets
