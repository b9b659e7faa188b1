#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace miniqat::distributed {

/// Data on their way between ranks. The memory that they come from and go to must stay, unchanged from outside, until
/// they have arrived; a Transfer that goes before waits for that.
class Transfer {
 public:
  virtual ~Transfer() = default;
  /// Whether all have arrived; lets them move on meanwhile. Throws Error if the network failed.
  virtual bool done() = 0;
};

/// The processes ("ranks") of one run, and the ways of data between them. All ranks call the functions of one channel
/// with the same sizes in the same order; several transfers may be on their way. No function adds or compares numbers:
/// bytes arrive as they were sent, so that results do not depend on the library below. For one thread of a
/// process at a time.
/// Functions throw Error if the network fails.
class Communicator {
 public:
  virtual ~Communicator() = default;

  /// 0 <= rank() < size().
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// A second channel between these ranks, for data whose order relative to those of other channels is not the same on
  /// all ranks. All ranks must make their channels in the same order. It must not outlive this.
  virtual std::unique_ptr<Communicator> channel() = 0;

  /// `out` holds size() blocks of equal length; block r goes to rank r. `in`, as long, gets the blocks for this rank,
  /// in the order of the ranks that sent them.
  virtual std::unique_ptr<Transfer> all_to_all(std::span<const std::byte> out, std::span<std::byte> in) = 0;
  /// `in`, size() times as long as `out`, gets what every rank sent, in the order of the ranks.
  virtual std::unique_ptr<Transfer> all_gather(std::span<const std::byte> out, std::span<std::byte> in) = 0;
  /// Sends `out` to another rank, which calls this at the same time, and receives as many bytes from it.
  virtual std::unique_ptr<Transfer> swap(int partner, std::span<const std::byte> out, std::span<std::byte> in) = 0;

  /// Rank `root` sends, all others receive.
  virtual std::unique_ptr<Transfer> broadcast(std::span<std::byte> data, int root) = 0;
  /// Done once all ranks have called it.
  virtual std::unique_ptr<Transfer> barrier() = 0;

  /// Ends all ranks at once, with this exit status, whatever they do.
  [[noreturn]] virtual void abort(int status) = 0;
  /// All ranks are about to end well. A process that ends without it ends all others.
  virtual void close() = 0;
};

/// The communicator of a process that is alone: what it sends has arrived.
class LoneCommunicator : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::unique_ptr<Communicator> channel() override { return std::make_unique<LoneCommunicator>(); }
  std::unique_ptr<Transfer> all_to_all(std::span<const std::byte> out, std::span<std::byte> in) override;
  std::unique_ptr<Transfer> all_gather(std::span<const std::byte> out, std::span<std::byte> in) override;
  /// There is no other: never called.
  std::unique_ptr<Transfer> swap(int partner, std::span<const std::byte> out, std::span<std::byte> in) override;
  std::unique_ptr<Transfer> broadcast(std::span<std::byte> data, int root) override;
  std::unique_ptr<Transfer> barrier() override;
  [[noreturn]] void abort(int status) override;
  void close() override {}
};

/// The one of this process. It keeps nothing, so that all may use it.
LoneCommunicator& alone();

/// Waits until the data have arrived. Calls `meanwhile` between two looks, and lets other processes of the core run.
void wait_for(
    Transfer& transfer, const std::function<void()>& meanwhile = [] {});

/// all_gather(), waited for.
void gather(Communicator& ranks, std::span<const std::byte> out, std::span<std::byte> in);

/// Every rank's value, in the order of the ranks.
template <class T>
std::vector<T> gathered(Communicator& ranks, const T& own) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> all(static_cast<std::size_t>(ranks.size()));
  gather(ranks, std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)));
  return all;
}

/// The text of rank 0, on all ranks.
std::string broadcast_text(Communicator& ranks, std::string text);

/// While one lives, its thread waits for other ranks, or is in a call that may do so. One thread of a process at a
/// time, as with the Communicator; the same thread may have one within another.
class WaitForRanks {
 public:
  WaitForRanks();
  ~WaitForRanks();
  WaitForRanks(const WaitForRanks&) = delete;

 private:
  bool outermost_;
};

/// Calls `end` once asked() has been true for `patience`, and a wait for ranks has lasted as long: another rank is
/// dead, probably. Slurm asks the others to end then, and kills them only half a minute later; they would wait so long
/// for the end of the step. A thread of its own looks, since an MPI library may not return from a call. `asked` and
/// `end` are called by that thread.
class DeadRankWatch {
 public:
  DeadRankWatch(bool (*asked)(), std::function<void()> end,
                std::chrono::milliseconds patience = std::chrono::seconds(4));

 private:
  void look(const std::stop_token& stop, bool (*asked)(), const std::function<void()>& end) const;

  std::chrono::milliseconds patience_;
  std::jthread thread_;
};

}  // namespace miniqat::distributed
