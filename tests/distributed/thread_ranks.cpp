#include "tests/distributed/thread_ranks.h"

#include <condition_variable>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/text/error.h"

namespace miniqat::distributed {
namespace {

using Bytes = std::vector<std::byte>;

struct Address {
  int channel, from, to, number;
  auto operator<=>(const Address&) const = default;
};

class Mail {
 public:
  void send(const Address& address, std::span<const std::byte> data) {
    const std::lock_guard lock(mutex_);
    box_[address] = Bytes(data.begin(), data.end());
  }
  bool take(const Address& address, std::span<std::byte> data) {
    const std::lock_guard lock(mutex_);
    const auto found = box_.find(address);
    if (found == box_.end()) return false;
    if (found->second.size() != data.size()) fail("a message of ", found->second.size(), " bytes, not ", data.size());
    std::memcpy(data.data(), found->second.data(), data.size());
    box_.erase(found);
    return true;
  }

 private:
  std::mutex mutex_;
  std::map<Address, Bytes> box_;
};

class ThreadTransfer : public Transfer {
 public:
  ThreadTransfer(Mail& mail, int delay) : mail_(mail), delay_(delay) {}
  void expect(const Address& address, std::span<std::byte> data) { expected_.push_back({address, data}); }
  bool done() override {
    if (delay_-- > 0) return false;
    std::erase_if(expected_, [&](const auto& one) { return mail_.take(one.first, one.second); });
    return expected_.empty();
  }

 private:
  Mail& mail_;
  int delay_;
  std::vector<std::pair<Address, std::span<std::byte>>> expected_;
};

class ThreadCommunicator : public Communicator {
 public:
  ThreadCommunicator(Mail& mail, int rank, int size, std::shared_ptr<int> channels)
      : mail_(mail), rank_(rank), size_(size), channels_(std::move(channels)), channel_((*channels_)++) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  std::unique_ptr<Communicator> channel() override {
    return std::make_unique<ThreadCommunicator>(mail_, rank_, size_, channels_);
  }

  std::unique_ptr<Transfer> all_to_all(std::span<const std::byte> out, std::span<std::byte> in) override {
    const std::size_t block = out.size() / size_;
    auto transfer = begin();
    for (int rank = 0; rank < size_; ++rank) {
      mail_.send({channel_, rank_, rank, number_}, out.subspan(rank * block, block));
      transfer->expect({channel_, rank, rank_, number_}, in.subspan(rank * block, block));
    }
    return transfer;
  }
  std::unique_ptr<Transfer> all_gather(std::span<const std::byte> out, std::span<std::byte> in) override {
    auto transfer = begin();
    for (int rank = 0; rank < size_; ++rank) {
      mail_.send({channel_, rank_, rank, number_}, out);
      transfer->expect({channel_, rank, rank_, number_}, in.subspan(rank * out.size(), out.size()));
    }
    return transfer;
  }
  std::unique_ptr<Transfer> swap(int partner, std::span<const std::byte> out, std::span<std::byte> in) override {
    auto transfer = begin();
    mail_.send({channel_, rank_, partner, number_}, out);
    transfer->expect({channel_, partner, rank_, number_}, in);
    return transfer;
  }
  std::unique_ptr<Transfer> broadcast(std::span<std::byte> data, int root) override {
    auto transfer = begin();
    for (int rank = 0; rank_ == root && rank < size_; ++rank) mail_.send({channel_, root, rank, number_}, data);
    transfer->expect({channel_, root, rank_, number_}, data);
    return transfer;
  }
  std::unique_ptr<Transfer> barrier() override { return all_gather({}, {}); }
  void abort(int status) override { fail("rank ", rank_, " ends all with status ", status); }
  void close() override {}

 private:
  std::unique_ptr<ThreadTransfer> begin() {
    ++number_;
    return std::make_unique<ThreadTransfer>(mail_, (rank_ * 7 + number_ * 3 + channel_ * 2) % 5);
  }

  Mail& mail_;
  int rank_, size_;
  /// How many this rank has made; the same number is the same channel on all ranks.
  std::shared_ptr<int> channels_;
  int channel_;
  int number_ = 0;
};

}  // namespace

void as_ranks(int count, const std::function<void(Communicator&)>& body) {
  Mail mail;
  std::vector<std::exception_ptr> failures(count);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < count; ++rank)
    threads.emplace_back([&, rank] {
      try {
        ThreadCommunicator communicator(mail, rank, count, std::make_shared<int>(0));
        body(communicator);
      } catch (...) {
        failures[rank] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures)
    if (failure != nullptr) std::rethrow_exception(failure);
}

}  // namespace miniqat::distributed
