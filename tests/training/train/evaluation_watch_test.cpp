#include <string>
#include <vector>

#include "tests/cli/tables.h"
#include "tests/errors.h"
#include "tests/training/answered.h"
#include "tests/training/run_fixture.h"
#include "training/run/data_of_run.h"
#include "training/train/watches.h"

namespace miniqat::training::evaluation_watch_test {
namespace {

struct Listener : RunObserver {
  void warn(const std::string& text) override { warnings.push_back(text); }
  std::vector<std::string> warnings;
};

class EvaluationWatchTest : public RunFixture {
 protected:
  EvaluationWatchTest() { place_.write("norm.json", testing::tiny_classifier_with_batch_norm()); }

  TrainSettings with_batch_norm() const {
    TrainSettings wanted = settings();
    wanted.model = path("norm.json").string();
    wanted.float_only = true;
    return wanted;
  }
  TrainSettings of_numbers() const {
    testing::write_tables(place_);
    TrainSettings wanted = settings();
    wanted.model = "autoencoder";
    wanted.dataset = path("sums.csv").string();
    wanted.data_dir = "";
    wanted.task = "reconstruct";
    wanted.float_only = true;
    return wanted;
  }

  /// What is said of an untrained network whose last batches had such a loss.
  std::vector<std::string> heard(const TrainSettings& wanted, double loss, int steps = 20, int evaluations = 1) const {
    TrainingTask task(read_networks(wanted));
    Listener listener;
    EvaluationWatch watch(task, "RUN", listener);
    for (int i = 0; i < steps; ++i) watch.note_step({.loss = loss});
    Evaluation judged = task.evaluate_now(judging_part(task.data).pictures);
    judged.by_class.clear();
    for (int i = 0; i < evaluations; ++i) watch.after_evaluation(judged);
    return listener.warnings;
  }
};

TEST_F(EvaluationWatchTest, StatisticsThatLagAreNamedOnce) {
  const std::vector<std::string> warnings = heard(with_batch_norm(), 0.2, 20, 3);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(testing::mentions(
      warnings[0], {"warning: ", "lag behind", "32 training pictures", "0.200", "miniqat reestimate --run RUN"}))
      << warnings[0];
}

TEST_F(EvaluationWatchTest, OtherLossesAreNot) {
  EXPECT_TRUE(heard(with_batch_norm(), 2.2).empty()) << "as in evaluation";
  EXPECT_TRUE(heard(with_batch_norm(), 0.2, 9).empty()) << "too few steps";
  TrainSettings plain = settings();
  plain.float_only = true;
  EXPECT_TRUE(heard(plain, 0.2).empty()) << "no batch norm";
  TrainSettings estimates = with_batch_norm();
  estimates.reestimate = 4;
  EXPECT_TRUE(heard(estimates, 0.2).empty()) << "the end will have others";
  TrainSettings weighted = with_batch_norm();
  weighted.class_weights = "balanced";
  EXPECT_TRUE(heard(weighted, 0.2).empty()) << "the loss of training is another";
  TrainSettings robust = of_numbers();
  EXPECT_EQ(heard(robust, 1e-3).size(), 1u);
  robust.huber = 1;
  EXPECT_TRUE(heard(robust, 1e-3).empty()) << "large errors count less in training";
  TrainSettings waits = with_batch_norm();
  waits.float_only = false;
  waits.rewrite.quant_delay = 10;
  EXPECT_TRUE(heard(waits, 0.2).empty()) << "evaluation quantizes, training does not yet";
}

TEST_F(EvaluationWatchTest, OneAnswerForAllIsSaidEachTime) {
  TrainingTask task(read_networks(settings()));
  Listener listener;
  EvaluationWatch watch(task, "RUN", listener);
  std::vector<testing::Answered> answers;
  for (int i = 0; i < 100; ++i) answers.push_back({{1, 0, 0, 0, 0, 0, 0, 0, 0, 0}, i % 10});
  const Evaluation judged = testing::evaluated(answers);
  for (int i = 0; i < 2; ++i) watch.after_evaluation(judged);
  ASSERT_EQ(listener.warnings.size(), 2u);
  EXPECT_TRUE(testing::mentions(listener.warnings[1], {"the network answers 0 for 100.00%", "10.00% are that"}));
}

}  // namespace
}  // namespace miniqat::training::evaluation_watch_test
