#include "datasets/pictures/decoding_budget.h"

#include <chrono>

#include "core/platform/interruption.h"

namespace miniqat::datasets {

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
