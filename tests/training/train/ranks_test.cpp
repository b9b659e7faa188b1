// Trainings on two ranks, which are threads of this process.

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "core/engine/session.h"
#include "distributed/rank_exchange.h"
#include "layers/layers.h"
#include "optim/sgd.h"
#include "quantize/quantize.h"
#include "tests/distributed/thread_ranks.h"
#include "tests/errors.h"
#include "tests/training/run_fixture.h"

namespace miniqat::training::ranks_test {
namespace {

using distributed::Communicator;
using distributed::RankExchange;

/// Wants to stop from the end of step `last` on.
struct Stopper : RunObserver {
  explicit Stopper(std::int64_t last) : last(last) {}
  void on_step(const StepReport& report) override { step = report.step; }
  bool wants_to_stop() override { return step >= last; }
  std::int64_t last, step = 0;
};

class RanksOfTraining : public RunFixture {
 protected:
  RanksOfTraining() { place_.write("norm.json", testing::tiny_classifier_with_batch_norm()); }

  TrainSettings sharded() const {
    TrainSettings wanted = settings();
    wanted.model = path("norm.json").string();
    wanted.batch_size = 8;
    wanted.shards = 2;
    return wanted;
  }
  /// Each rank in a folder of its own, with its own observer. `stops`: after which step it wants to stop.
  void train_on_two(const std::string& name, const TrainSettings& wanted, const std::vector<std::int64_t>& stops,
                    bool resume = false) const {
    distributed::as_ranks(2, [&](Communicator& communicator) {
      const int rank = communicator.rank();
      TrainExtras extras{.resume = resume && rank == 0, .begun = wanted, .ranks = communicator};
      Stopper observer(stops[static_cast<std::size_t>(rank)]);
      const std::filesystem::path folder = path(name + std::to_string(rank));
      train(wanted,
            extras.resume ? RunDirectory::resume(folder)
                          : RunDirectory::fresh(folder, "none", RunDirectory::Existing::kOverwrite),
            extras, observer);
    });
  }
};

constexpr std::int64_t kNever = 1000;

/// Between the last step and the summary there is no step that could carry the wish: the ranks must not part there.
TEST_F(RanksOfTraining, AWishAfterTheLastStepCannotPartTheRanks) {
  TrainSettings wanted = sharded();
  wanted.reestimate = 2;
  RunObserver nobody;
  const testing::RunFiles alone = train_new("alone", wanted, nobody);
  train_on_two("other", wanted, {kNever, wanted.steps});
  EXPECT_EQ(testing::files_of(path("other0")).checkpoint, alone.checkpoint);
  EXPECT_EQ(testing::files_of(path("other0")).summary["complete"], true);
  EXPECT_EQ(testing::files_of(path("other0")).summary["test_loss"], alone.summary["test_loss"]);

  train_on_two("leader", wanted, {wanted.steps, kNever});
  EXPECT_EQ(testing::files_of(path("leader0")).summary["complete"], false);
  train_on_two("leader", wanted, {kNever, kNever}, true);
  EXPECT_EQ(testing::files_of(path("leader0")).checkpoint, alone.checkpoint);
  EXPECT_EQ(testing::files_of(path("leader0")).summary["test_loss"], alone.summary["test_loss"]);
}

/// Killed between the estimate's checkpoint and the summary: only the leader knows that the estimate is there.
TEST_F(RanksOfTraining, GoOnAfterAnEstimateWithoutSummary) {
  TrainSettings wanted = sharded();
  wanted.reestimate = 2;
  train_on_two("run", wanted, {kNever, kNever});
  const testing::RunFiles whole = testing::files_of(path("run0"));
  std::filesystem::remove(path("run0") / "summary.json");
  train_on_two("run", wanted, {kNever, kNever}, true);
  EXPECT_EQ(testing::files_of(path("run0")).checkpoint, whole.checkpoint);
  EXPECT_EQ(testing::files_of(path("run0")).summary["test_loss"], whole.summary["test_loss"]);
}

/// The file may lie on the leader's machine only.
TEST_F(RanksOfTraining, OnlyTheLeaderReadsTheVariablesToStartFrom) {
  RunObserver nobody;
  train_new("first", sharded(), nobody);
  TrainSettings wanted = sharded();
  wanted.init_checkpoint = path("first").string();
  const testing::RunFiles alone = train_new("alone", wanted, nobody);
  distributed::as_ranks(2, [&](Communicator& communicator) {
    TrainSettings own = wanted;
    if (communicator.rank() == 1) own.init_checkpoint = path("nowhere").string();
    RunObserver observer;
    train(own, RunDirectory::fresh(path(concat("run", communicator.rank())), "none"), {.ranks = communicator},
          observer);
  });
  EXPECT_EQ(testing::files_of(path("run0")).checkpoint, alone.checkpoint);
}

class RanksOfARegression : public RanksOfTraining {
 protected:
  RanksOfARegression() {
    layers::register_ops();
    quantize::register_ops();
    for (const bool backwards : {false, true}) {
      std::string table = "a,sum\n";
      for (int i = 0; i < 64; ++i) table += concat(i % 13, ",", (backwards ? 63 - i : i) + 0.5, "\n");
      place_.write(backwards ? "backwards.csv" : "sums.csv", table);
    }
  }

  TrainSettings regression(const std::string& table) const {
    TrainSettings wanted = sharded();
    wanted.model = "mlp";
    wanted.data_dir = "";
    wanted.dataset = path(table).string();
    wanted.target = "sum";
    return wanted;
  }
};

TEST_F(RanksOfARegression, ComeToTheSame) {
  RunObserver nobody;
  const testing::RunFiles alone = train_new("alone", regression("sums.csv"), nobody);
  train_on_two("run", regression("sums.csv"), {kNever, kNever});
  EXPECT_EQ(testing::files_of(path("run0")).checkpoint, alone.checkpoint);
  EXPECT_EQ(testing::files_of(path("run0")).summary["test_r2"], alone.summary["test_r2"]);
}

TEST_F(RanksOfARegression, HaveTheSameNumbersToPredict) {
  const std::string error = testing::error_of([&] {
    distributed::as_ranks(2, [&](Communicator& communicator) {
      const TrainSettings wanted = regression(communicator.rank() == 0 ? "sums.csv" : "backwards.csv");
      RunObserver observer;
      train(wanted, RunDirectory::fresh(path(concat("run", communicator.rank())), "none"), {.ranks = communicator},
            observer);
    });
  });
  EXPECT_TRUE(testing::mentions(error, {"have different ", "examples of "})) << error;
}

/// loss = mean(x w), with a slice for each rank.
TEST(RanksOfASession, ANanOfOneRankEndsAll) {
  const std::string error = testing::error_of([] {
    distributed::as_ranks(2, [](Communicator& communicator) {
      Graph graph;
      const Output x = placeholder(graph, "x", {1, 1}), w = variable(graph, "w", {1, 1}, Initializer::constant(1));
      const Output loss = layers::mean(graph, "loss", layers::matmul(graph, "xw", x, w), {.axes = {0, 1}});
      RankExchange exchange(communicator, 2);
      Session session(graph);
      session.set_shards({.exchange = exchange});
      const optim::Sgd optimizer({.learning_rate = 0.1});
      const float bad = communicator.rank() == 1 ? std::numeric_limits<float>::quiet_NaN() : 1.0f;
      session.train_step(loss, optimizer, {{x, Tensor::from<float>({1, 1}, {1})}});
      const auto weight = [&] { return *session.variables().at("w").data<float>(); };
      const float before = weight();
      const std::string own = testing::error_of([&] {
        session.train_step(loss, optimizer, {{x, Tensor::from<float>({1, 1}, {bad})}});
      });
      const bool has_slice =
          own.find(communicator.rank() == 1 ? " of slice 1" : "slice 1, in another process") != std::string::npos;
      if (own.find("the loss became NaN in step 2") == std::string::npos || !has_slice)
        fail("rank ", communicator.rank(), " says: ", own);
      if (weight() != before) fail("rank ", communicator.rank(), " keeps a part of the step");
    });
  });
  EXPECT_EQ(error, "");
}

}  // namespace
}  // namespace miniqat::training::ranks_test
