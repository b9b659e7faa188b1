#include "tests/distributed/thread_ranks.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/tensors/random.h"
#include "core/text/error.h"
#include "distributed/tensor_sums.h"

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

constexpr int kShards = 8;

using Values = std::vector<float>;

/// A shard's tensor. One number in eight is special; its shard depends on its place, so that no sum has two NaNs.
Values shard_values(std::int64_t length, int shard, std::uint64_t key) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Random random(mix(key, shard));
  Values values(length);
  for (std::int64_t i = 0; i < length; ++i) {
    values[i] = random.normal() * std::exp2(static_cast<float>(random.below(40)));
    if (i % 8 != 0 || (i / 8) % kShards != shard) continue;
    const float specials[] = {std::bit_cast<float>(0x7fc12345u + static_cast<std::uint32_t>(i)), kInfinity, -0.0f,
                              1e30f};
    values[i] = specials[(i / 64) % 4];
  }
  if (length % 5 == 0) values.assign(length, shard == 3 ? 0.0f : -0.0f);
  return values;
}

/// Recursively, unlike the code that is tested.
Values tree_sum(std::int64_t length, int first, int count, std::uint64_t key) {
  if (count == 1) return shard_values(length, first, key);
  Values sum = tree_sum(length, first, count / 2, key);
  const Values right = tree_sum(length, first + count / 2, count / 2, key);
  for (std::int64_t i = 0; i < length; ++i) sum[i] = sum[i] + right[i];
  return sum;
}

void require_same(const Values& sum, const Values& expected, std::size_t tensor) {
  for (std::size_t i = 0; i < sum.size(); ++i)
    if (std::bit_cast<std::uint32_t>(sum[i]) != std::bit_cast<std::uint32_t>(expected[i]))
      fail("tensor ", tensor, ", number ", i, " of ", sum.size(), ": ", sum[i], ", the tree has ", expected[i]);
}

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

void check_tree_sums(Communicator& ranks, SumWay way, std::chrono::microseconds interval) {
  // The last bucket has 99 numbers; then 99 that seem to fill it, and more; then 1; then it is full; then there is
  // none.
  const std::vector<std::vector<std::int64_t>> steps = {
      {1, 250, 0, 777, 3, 64, 5, 1999}, {3000, 99, 50}, {1, 300, 1000}, {1999, 1}, {0},
      {1, 250, 0, 777, 3, 64, 5, 1999}};
  constexpr float kFactor = 0.125f;
  TensorSums sums(ranks, {.floats = 100, .factor = kFactor, .way = way, .interval = interval});
  const int own = kShards / ranks.size();
  for (std::size_t step = 0; step < steps.size(); ++step) {
    std::vector<Values> parts;
    for (const std::int64_t length : steps[step])
      parts.push_back(tree_sum(length, ranks.rank() * own, own, mix(step, length)));
    for (Values& part : parts) {
      sums.hand_over(part);
      std::this_thread::sleep_for(3 * interval);
    }
    sums.flush();
    sums.finish();
    for (std::size_t k = 0; k < parts.size(); ++k) {
      Values expected = tree_sum(std::ssize(parts[k]), 0, kShards, mix(step, parts[k].size()));
      for (float& value : expected) value *= kFactor;
      require_same(parts[k], expected, k);
    }
  }
}

void check_sums_move_on(Communicator& ranks) {
  Values ones(64, 1.0f);
  TensorSums sums(ranks, {.floats = 64, .way = SumWay::kHalves, .interval = std::chrono::microseconds(100)});
  wait_for(*ranks.barrier());
  sums.hand_over(ones);
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  // Ends the thread's turn, and moves nothing.
  sums.abandon();
  require_same(ones, Values(64, static_cast<float>(ranks.size())), 0);
  wait_for(*ranks.barrier());
}

void check_small_talk(Communicator& ranks) {
  const auto require = [](bool right, const char* what) {
    if (!right) fail(what, " has the wrong result");
  };
  const auto rank = static_cast<float>(ranks.rank()), last = static_cast<float>(ranks.size() - 1);
  const std::vector<float> all = gathered(ranks, rank);
  for (std::size_t k = 0; k < all.size(); ++k) require(all[k] == static_cast<float>(k), "gathered");
  const std::string word = "the word of rank 0";
  require(broadcast_text(ranks, ranks.rank() == 0 ? word : "another") == word, "broadcast_text");
  float value = rank;
  wait_for(*ranks.broadcast(std::as_writable_bytes(std::span(&value, 1)), ranks.size() - 1));
  require(value == last, "broadcast");
  wait_for(*ranks.barrier());
}

}  // namespace miniqat::distributed
