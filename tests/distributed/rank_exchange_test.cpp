#include "distributed/rank_exchange.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <bit>
#include <functional>
#include <string>
#include <vector>

#include "core/tensors/random.h"
#include "core/threads/parallel.h"
#include "distributed/launch.h"
#include "tests/distributed/thread_ranks.h"
#include "tests/errors.h"

namespace miniqat::distributed::rank_exchange_test {
namespace {

using Kind = ShardStatistic::Kind;

/// Of one rank's shard; enough of them, with `count`, to go either way of combine_statistics().
std::vector<ShardStatistic> statistics_of(int shard, int count) {
  std::vector<ShardStatistic> values;
  Random random(static_cast<std::uint64_t>(shard) + 7);
  for (int i = 0; i < count; ++i) {
    const double a = random.normal(), b = random.uniform();
    values.push_back({.kind = Kind::kRange, .a = a - b, .b = a + b});
    values.push_back({.kind = Kind::kMoments, .count = 16.0 + shard, .a = a, .b = b});
    values.push_back({.kind = Kind::kSum, .a = a * 1e9});
  }
  return values;
}

std::vector<ShardStatistic> tree_of(int first, int count, int length) {
  if (count == 1) return statistics_of(first, length);
  std::vector<ShardStatistic> left = tree_of(first, count / 2, length);
  combine(left, tree_of(first + count / 2, count / 2, length));
  return left;
}

bool same_bits(double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }

TEST(RankExchangeTest, StatisticsAreCombinedInTheTreesOrder) {
  for (const int ranks : {2, 4, 8})
    for (const int length : {1, 300}) {
      const std::vector<ShardStatistic> expected = tree_of(0, ranks, length);
      as_ranks(ranks, [&](Communicator& communicator) {
        RankExchange exchange(communicator, ranks);
        std::vector<ShardStatistic> values = statistics_of(communicator.rank(), length);
        exchange.combine(values);
        exchange.finish(1);
        for (std::size_t i = 0; i < values.size(); ++i)
          if (!same_bits(values[i].a, expected[i].a) || !same_bits(values[i].b, expected[i].b))
            fail("statistic ", i, " of ", ranks, " ranks: ", values[i].a, ", the tree has ", expected[i].a);
      });
    }
}

TEST(RankExchangeTest, AWishToStopOfOneRankReachesAll) {
  as_ranks(4, [](Communicator& communicator) {
    RankExchange exchange(communicator, 8);
    if (exchange.range() != ShardRange{.total = 8, .first = 2 * communicator.rank(), .count = 2}) fail("wrong shards");
    const auto step = [&] {
      exchange.combine({});
      exchange.finish(1);
    };
    step();
    if (exchange.stop_asked()) fail("nobody asked");
    if (communicator.rank() == 2) exchange.ask_to_stop();
    step();
    if (!exchange.stop_asked()) fail("rank ", communicator.rank(), " goes on");
  });
}

TEST(RankExchangeTest, SharesAndAdds) {
  as_ranks(4, [](Communicator& communicator) {
    RankExchange exchange(communicator, 4);
    if (exchange.share(exchange.leads() ? std::string("the word") : "") != "the word") fail("another word");
    std::int64_t counts[] = {communicator.rank(), -5};
    exchange.add_up(counts);
    if (counts[0] != 6 || counts[1] != -20) fail("wrong sums");
  });
}

TEST(RankExchangeTest, TheFirstDifferenceEndsTheRun) {
  const auto compare = [](int other) {
    return testing::error_of([other] {
      as_ranks(4, [other](Communicator& communicator) {
        RankExchange(communicator, 4)
            .require_same([&] { return communicator.rank() == other ? 1 : 0; }, "variables after step 9");
      });
    });
  };
  EXPECT_EQ(compare(-1), "");
  EXPECT_TRUE(testing::mentions(compare(2), {"ranks 0 and 2 have different variables after step 9"}));
}

TEST(RankExchangeTest, AProcessThatIsAloneAsksNobody) {
  LoneCommunicator alone;
  EXPECT_EQ(gathered(alone, 7), std::vector<int>{7});
  RankExchange exchange(alone, 4);
  EXPECT_TRUE(exchange.is_alone());
  EXPECT_TRUE(exchange.leads());
  EXPECT_NE(&exchange.exchange(), &exchange) << "a session computes all shards by itself";
  EXPECT_EQ(exchange.exchange().range(), exchange.range());
  EXPECT_EQ(exchange.range(), (ShardRange{.total = 4, .first = 0, .count = 4}));
  EXPECT_EQ(exchange.share("the word"), "the word");
  EXPECT_TRUE(exchange.share_answer(true));
  exchange.require_same([]() -> std::uint64_t { fail("a hash that nobody needs"); }, "variables");
  EXPECT_FALSE(exchange.stop_asked());
  exchange.ask_to_stop();
  EXPECT_TRUE(exchange.stop_asked()) << "no step has to carry the wish";
}

TEST(RankExchangeTest, RanksMustDivideTheShards) {
  EXPECT_TRUE(testing::mentions(
      testing::error_of([] { as_ranks(4, [](Communicator& communicator) { RankExchange(communicator, 2); }); }),
      {"4 ranks cannot share 2 shards"}));
}

TEST(RequireAlike, WarnsOfMoreThreadsThanCores) {
  const auto warnings = [](int ranks, const std::function<int(int)>& threads) {
    std::string text;
    as_ranks(ranks, [&](Communicator& communicator) {
      const std::vector<std::string> own = require_same_build(communicator, threads(communicator.rank()));
      if (communicator.rank() > 0) return;
      for (const std::string& one : own) text += one + "; ";
    });
    return text;
  };
  const int cores = available_cores();
  EXPECT_EQ(warnings(1, [&](int) { return cores; }), "");
  EXPECT_TRUE(testing::mentions(warnings(1, [&](int) { return cores + 1; }), {"rank 0 has", "is bound to", "core"}));
  EXPECT_TRUE(testing::mentions(warnings(cores + 1, [](int) { return 1; }), {"ranks on one machine have", "only"}));
  EXPECT_TRUE(testing::mentions(warnings(2, [](int rank) { return 2 - rank; }),
                                {"rank 1 has 1 thread, rank 0 2: the slowest rank sets the pace"}));
}

/// The calling thread alone is bound: its rank has one core for two threads.
TEST(RequireAlike, SeesWhatARankIsBoundTo) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  std::string text;
  as_ranks(1, [&](Communicator& communicator) {
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int core = 0; CPU_COUNT(&one) == 0; ++core)
      if (CPU_ISSET(core, &before)) CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
    for (const std::string& warning : require_same_build(communicator, 2)) text += warning;
  });
  sched_setaffinity(0, sizeof before, &before);
  EXPECT_TRUE(testing::mentions(text, {"rank 0 has 2 threads, but is bound to 1 core:"}));
}

}  // namespace
}  // namespace miniqat::distributed::rank_exchange_test
