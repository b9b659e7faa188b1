#pragma once

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "core/engine/shard_exchange.h"
#include "core/engine/sweep.h"

namespace miniqat::testing {

/// Threads that stand for the processes of a run with shards.
class ThreadGroup {
 public:
  explicit ThreadGroup(int processes) : barrier_(processes), members_(static_cast<std::size_t>(processes)) {}

  /// Calls body(exchange, process) in a thread for each process, and rethrows the first one's error.
  void run(int shards, const std::function<void(ShardExchange&, int)>& body) {
    std::vector<std::exception_ptr> failures(members_.size());
    {
      std::vector<std::jthread> threads;
      for (int process = 0; process < count(); ++process)
        threads.emplace_back([&, process] {
          Member& member = members_[static_cast<std::size_t>(process)];
          member.exchange.emplace(
              *this, process,
              ShardRange{.total = shards, .first = shards / count() * process, .count = shards / count()});
          try {
            body(*member.exchange, process);
          } catch (...) {
            failures[static_cast<std::size_t>(process)] = std::current_exception();
          }
        });
    }
    for (const std::exception_ptr& failure : failures)
      if (failure) std::rethrow_exception(failure);
  }
  int abandoned() const { return abandoned_; }

 private:
  struct Member;
  class Exchange final : public ShardExchange {
   public:
    Exchange(ThreadGroup& group, int process, const ShardRange& range)
        : group_(group), process_(process), range_(range) {}
    ShardRange range() const override { return range_; }
    void start(Tensor& left, const Tensor& right) override {
      if (right.defined()) add_to(left, right);
      own().started.push_back(&left);
    }
    void combine(std::span<ShardStatistic> values) override {
      own().statistics.assign(values.begin(), values.end());
      group_.barrier_.arrive_and_wait();
      std::vector<std::vector<ShardStatistic>> parts;
      for (const Member& member : group_.members_) parts.push_back(member.statistics);
      for (std::size_t distance = 1; distance < parts.size(); distance *= 2)
        for (std::size_t k = 0; k < parts.size(); k += 2 * distance) miniqat::combine(parts[k], parts[k + distance]);
      std::ranges::copy(parts.front(), values.begin());
      group_.barrier_.arrive_and_wait();
    }
    void finish(int) override {
      group_.barrier_.arrive_and_wait();
      if (process_ == 0) group_.add_gradients();
      group_.barrier_.arrive_and_wait();
      own().started.clear();
    }
    void abandon() noexcept override { ++group_.abandoned_; }
    void add_up(std::span<std::int64_t> counts) override {
      own().counts.assign(counts.begin(), counts.end());
      group_.barrier_.arrive_and_wait();
      std::ranges::fill(counts, 0);
      for (const Member& member : group_.members_)
        for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += member.counts[i];
      group_.barrier_.arrive_and_wait();
    }

   private:
    Member& own() const { return group_.members_[static_cast<std::size_t>(process_)]; }
    ThreadGroup& group_;
    const int process_;
    const ShardRange range_;
  };
  struct Member {
    std::optional<Exchange> exchange;
    std::vector<Tensor*> started;
    std::vector<ShardStatistic> statistics;
    std::vector<std::int64_t> counts;
  };

  int count() const { return static_cast<int>(members_.size()); }
  /// All have started the same gradients in the same order.
  void add_gradients() {
    for (std::size_t k = 0; k < members_.front().started.size(); ++k) {
      std::vector<float*> parts;
      for (const Member& member : members_) parts.push_back(member.started.at(k)->data<float>());
      const std::int64_t n = members_.front().started[k]->elements();
      add_in_tree(parts, n);
      const auto shards = static_cast<float>(members_.front().exchange->range().total);
      for (std::int64_t i = 0; i < n; ++i) parts[0][i] /= shards;
      for (std::size_t p = 1; p < parts.size(); ++p) std::copy_n(parts[0], n, parts[p]);
    }
  }

  std::barrier<> barrier_;
  std::vector<Member> members_;
  std::atomic<int> abandoned_ = 0;
};

}  // namespace miniqat::testing
