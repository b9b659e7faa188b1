#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "distributed/bucket_sum.h"

namespace miniqat::distributed {

/// Calls a function at intervals, from a thread of its own, in the stretches between resume() and pause(). That thread
/// shares the core of the one that resumes first, and wakes at each interval only.
class PeriodicCall {
 public:
  PeriodicCall(std::chrono::microseconds interval, std::function<void()> beat);
  ~PeriodicCall();
  PeriodicCall(const PeriodicCall&) = delete;
  PeriodicCall& operator=(const PeriodicCall&) = delete;

  /// The first call comes an interval later at most.
  void resume();
  /// Waits for a call that runs; none comes until resume().
  void halt() noexcept;
  /// halt(), and throws what a call since the last pause() has thrown; after that there was none.
  void pause();

 private:
  void run();

  std::chrono::microseconds interval_;
  std::function<void()> beat_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool beats_ = false;
  bool ended_ = false;
  /// Whether the thread waits for resume(), not for the time.
  bool sleeps_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

struct BucketOptions {
  /// A bucket of 1 MiB: long enough for the network's full speed, short enough that much of a large tensor is on its
  /// way while the rest is added.
  std::int64_t floats = 1 << 18;
  /// Multiplies the sums.
  float factor = 1;
  /// How buckets are summed; by default as sum_way() says for each.
  std::optional<SumWay> way = {};
  /// A thread lets the buckets that are on their way move on at this interval, from hand_over() to flush(); 0: there is
  /// none, they move on in calls only.
  std::chrono::microseconds interval{0};
};

/// The sums of a step's tensors over all ranks, sent while the later ones are still computed. The tensors, one behind
/// the other in the order in which they come, are one row of numbers, which is cut into buckets: small tensors share
/// one, a large one fills several. Made once for all steps. All ranks hand over tensors of the same lengths in the same
/// order. Between hand_over() and flush() a thread of this may use `ranks`: nobody else must.
class TensorSums {
 public:
  /// `ranks` must stay as long as this.
  explicit TensorSums(Communicator& ranks, const BucketOptions& options = {});
  ~TensorSums();

  /// This rank's part of the next tensor, whose memory belongs to this until finish(), and has the sum then. Full
  /// buckets go on their way: stretches of a tensor that fill one from where they are, others as copies.
  void hand_over(std::span<float> tensor);
  /// The last tensor of the step was handed over: what waits for a full bucket goes on its way.
  void flush();
  /// Lets the buckets move on, if they can; never waits. hand_over() and flush() do so, too. With an interval only
  /// after flush().
  void progress();
  /// After flush(): waits for the sums and puts them where the parts came from. Ready for the next step then.
  void finish();
  /// Forgets the step. Its data may still be on their way: this must not be used again.
  void abandon() noexcept;

 private:
  struct Bucket;

  Bucket& bucket_of(std::int64_t place);
  void resize(Bucket& bucket, std::int64_t floats);
  template <class Body>
  void over_buckets(std::int64_t first, std::span<float> tensor, const Body& body);
  static void start(Bucket& bucket);
  void move_on();

  Communicator& ranks_;
  BucketOptions options_;
  std::vector<Bucket> buckets_;
  /// The tensors of this step, in the order of hand_over().
  std::vector<std::span<float>> tensors_;
  /// Numbers handed over so far.
  std::int64_t filled_ = 0;
  std::size_t started_ = 0;
  /// Buckets before this one are summed.
  std::size_t summed_ = 0;
  /// Null without an interval. Between hand_over() and flush() the buckets are its own.
  std::unique_ptr<PeriodicCall> mover_;
};

}  // namespace miniqat::distributed
