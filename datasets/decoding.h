#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>

#include "core/tensors/tensor.h"

namespace miniqat::datasets {

/// Told how many pictures of a folder have been decoded, several times a second and at the end, in the thread that
/// loads them; 0 while their sizes are read. What it throws ends the loading, and no cache is written.
using DecodeProgress = std::function<void(std::int64_t done, std::int64_t all)>;

/// Whom all loading tells from now on; {}: nobody. For a program that has a terminal, and before it loads: not to be
/// changed meanwhile.
void tell_of_decoding(DecodeProgress listener);

/// Tells that one, if there is any.
void decoding_went_on(std::int64_t done, std::int64_t all);

/// Processes that read the same folder of pictures at the same time, and decode a part of it each. All make the same
/// calls in the same order.
class SharedDecoding {
 public:
  virtual ~SharedDecoding() = default;

  /// 0 <= part() < parts().
  virtual int parts() const = 0;
  virtual int part() const = 0;
  /// Whether all processes have the same number.
  virtual bool same(std::uint64_t number) = 0;
  /// The bytes of process `part` take the place of all others'.
  virtual void spread(int part, std::span<std::byte> bytes) = 0;
};

/// A process that decodes all by itself.
SharedDecoding& lone_decoding();

/// All loading shares its work with `with` from now on; before the first call, with lone_decoding(). `with` must stay.
/// Not to be changed while something loads.
void share_decoding(SharedDecoding& with);

/// What share_decoding() was given last.
SharedDecoding& shared_decoding();

/// The first picture of a part, of `count` pictures: parts follow one another, and `part` may be parts(), the end.
std::int64_t first_of_part(const SharedDecoding& with, int part, std::int64_t count);

/// `images` [n, ...] of which each process has decoded the pictures of its part: all get all.
void put_together(SharedDecoding& with, Tensor& images);

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
