#include "training/verify/verifier.h"

#include <algorithm>

#include "core/files/safetensors.h"
#include "core/graph/graph_json.h"
#include "core/tensors/tensor.h"
#include "tests/training/run_fixture.h"
#include "training/evaluate/evaluator.h"
#include "training/run/integer_source.h"
#include "training/run/run_source.h"

namespace miniqat::training::verifier_test {
namespace {

/// A trained run with its integer model.
class Verifier : public RunFixture {
 protected:
  Verifier() {
    RunObserver silent;
    train_new("run", settings(), silent);
    run_.emplace(open_run(path("run").string(), ""));
    data_ = load_data(*run_, "", "").test;
    const std::string source = run_->directory.eval_graph().string();
    classifier_ = find_classifier(read_graph(source), source);
    session_.emplace(classifier_.graph);
    session_->restore(read_safetensors(run_->checkpoint), Session::Restore::kVariables, run_->checkpoint);
    model_ = convert_run(run_->directory, run_->checkpoint, grid_of(data_));
  }

  Verification verified() { return verify(*session_, classifier_, model_, data_); }

  std::optional<RunSource> run_;
  datasets::Dataset data_;
  Classifier classifier_;
  std::optional<Session> session_;
  integer::Model model_;
};

TEST_F(Verifier, SaysWhatTheEvaluatorsSay) {
  const Verification result = verified();
  const Evaluation simulated = evaluate(*session_, classifier_, data_),
                   integer = evaluate_integers(model_, classification(), data_);
  EXPECT_EQ(result.simulated.examples, 20);
  EXPECT_EQ(result.integer.examples, 20);
  EXPECT_EQ(result.integer.correct, integer.correct());
  EXPECT_NEAR(result.simulated.accuracy(), simulated.accuracy(), 0.11);
  EXPECT_TRUE(result.reference_equal);
  EXPECT_FALSE(result.on_integers) << "its layers are too small";
  EXPECT_EQ(result.layers.size(), model_.operations.size());
  for (const LayerComparison& layer : result.layers) EXPECT_LE(layer.alone.largest, 1) << layer.operation;
}

TEST_F(Verifier, ReportsEveryBatch) {
  std::vector<std::int64_t> done;
  verify(*session_, classifier_, model_, data_, [&](std::int64_t so_far, std::int64_t total) {
    EXPECT_EQ(total, 20);
    done.push_back(so_far);
  });
  EXPECT_EQ(done, (std::vector<std::int64_t>{4, 8, 12, 16, 20}));
}

/// A wrong bias shows in its own operation, given equal inputs, and in no other.
TEST_F(Verifier, FindsTheOperationThatIsWrong) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < model_.operations.size() && wrong == 0; ++i)
    if (auto* layer = std::get_if<integer::Layer>(&model_.operations[i].action); layer != nullptr && i > 0) {
      for (std::int32_t& bias : layer->bias) bias += 20'000;
      wrong = i;
    }
  ASSERT_GT(wrong, 0u);
  const Verification result = verified();
  for (std::size_t i = 0; i < result.layers.size(); ++i)
    EXPECT_EQ(result.layers[i].alone.largest > 1, i == wrong) << result.layers[i].operation;
}

/// The graph does not have it, as it does not have the sums of layers with coarse units.
TEST_F(Verifier, ATensorThatConversionMadeTakesWhatItsOperationMakes) {
  const auto& operations = model_.operations;
  const auto inner = std::ranges::find_if(operations, [&](const auto& one) { return one.output != model_.output; });
  ASSERT_NE(inner, operations.end());
  model_.tensors[inner->output].name += ":units";
  const Verification result = verified();
  ASSERT_EQ(result.layers.size(), operations.size());
  EXPECT_EQ(result.layers[inner - operations.begin()].alone.largest, 0);
  for (const LayerComparison& layer : result.layers) EXPECT_LE(layer.alone.largest, 1) << layer.operation;
}

/// score_of() compares other outputs with the integer engine's: one of the twenty pictures has another class.
TEST_F(Verifier, ScoresOutputsOfOthers) {
  const Verification result = verified();
  Tensor output = result.output.clone();
  const auto logits = output.values<std::uint8_t>().first(10);
  const std::int64_t best = argmax(logits);
  std::ranges::fill(logits, 0);
  logits[(best + 1) % 10] = 255;
  const Score score = score_of("other", output, result, data_);
  EXPECT_EQ(score.examples, 20);
  EXPECT_EQ(score.agreeing, 19);
  EXPECT_EQ(score.outputs.count, 200);
  EXPECT_LT(score.outputs.equal, 200);
  EXPECT_GE(score.outputs.equal, 190);
}

}  // namespace
}  // namespace miniqat::training::verifier_test
