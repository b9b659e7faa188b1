#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace miniqat::datasets {

/// Bytes that several threads may hold at once: with any number of threads the pictures in flight stay below `bytes`.
/// One that is larger than that comes alone.
class DecodingBudget {
 public:
  explicit DecodingBudget(std::int64_t bytes) : bytes_(bytes) {}

  /// Holds its bytes as long as it lives. A thread has one at a time, so that none waits for another for ever.
  class Share {
   public:
    /// Waits until there is room, or throws an Interruption.
    Share(DecodingBudget& budget, std::int64_t bytes);
    ~Share();
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

   private:
    DecodingBudget& budget_;
    const std::int64_t bytes_;
  };

 private:
  const std::int64_t bytes_;
  std::mutex mutex_;
  std::condition_variable room_;
  std::int64_t held_ = 0;
};

/// The budget of all pictures which this process decodes: 3/4 GiB, so that everything together takes less than one.
DecodingBudget& decoding_budget();

}  // namespace miniqat::datasets
