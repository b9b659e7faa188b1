// What `miniqat train --init-checkpoint` says of the names in a checkpoint, and what it keeps in the run directory.

#include <gtest/gtest.h>

#include <algorithm>

#include "core/files/safetensors.h"
#include "core/text/json.h"
#include "tests/cli/program.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::init_checkpoint_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class InitCheckpointTest : public TinyTaskTest {
 protected:
  /// A checkpoint with two of the model's four variables and ten names that it does not have.
  void SetUp() override {
    NamedTensors tensors = {{"fc/biases", Tensor(Shape{10})}, {"conv1/biases", Tensor(Shape{4})}};
    for (char letter = 'a'; letter <= 'j'; ++letter) tensors[std::string("other/") + letter] = Tensor(Shape{2});
    tensors["optimizer:momentum/fc/biases"] = Tensor(Shape{10});
    tensors["session:step"] = Tensor::scalar(std::int64_t{7});
    write_safetensors(path("start.safetensors"), {.tensors = tensors, .metadata = {}});
  }

  Json kept(const std::string& run) const {
    return Json::parse(bytes_of(place_.path() / run / "init_checkpoint.json"));
  }
};

std::vector<std::string> lettered(char last) {
  std::vector<std::string> names;
  for (char letter = 'a'; letter <= last; ++letter) names.push_back(std::string("other/") + letter);
  return names;
}

std::string lines(const std::string& head, const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += "  " + head + " " + name + "\n";
  return text;
}

TEST_F(InitCheckpointTest, EightNamesOfAKindArePrintedAndAllAreKept) {
  const Outcome outcome = expect_success(train("run", "--float --init-checkpoint start.safetensors"));
  const std::string text = "From start.safetensors: 2 variables restored, 2 new, 10 unused.\n" +
                           lines("restored", {"conv1/biases", "fc/biases"}) +
                           lines("new     ", {"conv1/weights", "fc/weights"}) + lines("unused  ", lettered('h')) +
                           lines("unused  ", {"... and 2 more (--verbose lists all)"});
  EXPECT_TRUE(outcome.out.starts_with(text)) << outcome.out;
  EXPECT_EQ(kept("run"), Json({{"source", "start.safetensors"},
                               {"restored", {"conv1/biases", "fc/biases"}},
                               {"new", {"conv1/weights", "fc/weights"}},
                               {"unused", lettered('j')}}));
}

TEST_F(InitCheckpointTest, VerbosePrintsAllNames) {
  const Outcome outcome = expect_success(train("run", "--float --init-checkpoint start.safetensors --verbose"));
  expect_text(outcome.out, {lines("unused  ", lettered('j'))});
  EXPECT_EQ(outcome.out.find("more (--verbose"), std::string::npos) << outcome.out;
}

/// Somebody may have copied the file and config.json alone.
TEST_F(InitCheckpointTest, AFileNeedsNoGraphOfItsRun) {
  expect_success(train("float", "--float"));
  fs::remove(path("float/train_graph.json"));
  expect_error(train("run", "--float --init-checkpoint float"), 1, {"float/train_graph.json"});
  const Outcome outcome = expect_success(train("run", "--float --init-checkpoint float/checkpoint.safetensors"));
  expect_text(outcome.out, {"From float/checkpoint.safetensors: 4 variables restored, 0 new, 0 unused."});
}

TEST_F(InitCheckpointTest, AQuantizedRunKeepsTheNamesOfItsNewRanges) {
  expect_success(train("float", "--float"));
  EXPECT_FALSE(fs::exists(path("float/init_checkpoint.json")));
  const Outcome outcome = expect_success(train("qat", "--init-checkpoint float --stop-at 1"));
  const Json names = kept("qat");
  EXPECT_EQ(names["source"], "float/checkpoint.safetensors");
  EXPECT_EQ(names["restored"], Json({"conv1/biases", "conv1/weights", "fc/biases", "fc/weights"}));
  EXPECT_EQ(names["unused"], Json::array());
  ASSERT_GT(names["new"].size(), 8u);
  for (const std::string name : {"conv1/weights_quant/min", "fc/act_quant/max"})
    EXPECT_EQ(std::ranges::count(names["new"], Json(name)), 1) << name;
  expect_text(outcome.out, {"  new      ... and " + std::to_string(names["new"].size() - 8) + " more"});

  const Outcome resumed = expect_success(program("train --resume --out qat"));
  EXPECT_EQ(resumed.out.find("restored"), std::string::npos) << resumed.out;
  EXPECT_EQ(kept("qat"), names);
}

TEST_F(InitCheckpointTest, ADirectoryThatHoldsOneIsNoFreshOne) {
  place_.write("run/init_checkpoint.json", "{}");
  expect_error(train("run", "--float"), 1,
               {"run holds no run, but a file that a run would overwrite: init_checkpoint.json"});
}

/// Per tensor a range is a scalar, per channel a vector: what weights are is found anew in the first batch.
TEST_F(InitCheckpointTest, RangesOfAnotherShapeStartAnew) {
  expect_success(train("tensor", "--stop-at 2"));
  const Outcome outcome = train("channel", "--init-checkpoint tensor --per-channel --stop-at 1");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.err,
            "note: the run in tensor is unfinished: its checkpoint is of step 2 (miniqat train --resume goes on)\n");
  expect_text(outcome.out,
              {"4 ranges of another shape or folding, or not begun (new and unused), start anew from the first batch: "
               "conv1/weights_quant/max, ..."});
  const Json names = kept("channel");
  EXPECT_EQ(names["anew"], Json({"conv1/weights_quant/max", "conv1/weights_quant/min", "fc/weights_quant/max",
                                 "fc/weights_quant/min"}));
  EXPECT_EQ(names["new"], names["anew"]);
  EXPECT_EQ(names["unused"], names["anew"]);
  EXPECT_EQ(std::ranges::count(names["restored"], Json("conv1/act_quant/max")), 1);
  EXPECT_EQ(train("back", "--init-checkpoint channel --stop-at 1").status, 0);
  EXPECT_FALSE(kept("back")["anew"].empty());
}

}  // namespace
}  // namespace miniqat::testing::init_checkpoint_test
