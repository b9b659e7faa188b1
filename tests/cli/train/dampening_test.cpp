// `train --dampening`: resumed as never stopped, in the graph and the checkpoint, and without effect on evaluation.

#include <gtest/gtest.h>

#include <fstream>

#include "core/files/safetensors.h"
#include "tests/cli/run_files.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::dampening_test {
namespace {

class DampeningTest : public TinyTaskTest {
 protected:
  Outcome train_dampened(const std::string& out, const std::string& dampening, const Arguments& more = {}) const {
    const Arguments all =
        Arguments{"--model", "norm.json", "--weight-bits", "3", "--ranges", "learned", "--dampening", dampening} + more;
    return train(out, all);
  }
  NamedTensors tensors(const std::string& run) const {
    return read_safetensors(path(run) / "checkpoint.safetensors").tensors;
  }
};

TEST_F(DampeningTest, ResumesAsNeverStopped) {
  for (const std::string fold : {"tf", "single"}) {
    expect_success(train_dampened("whole-" + fold, "0.5", {"--bn-fold", fold}));
    expect_success(train_dampened("run-" + fold, "0.5", {"--bn-fold", fold, "--stop-at", "8"}));
    expect_success(resume("run-" + fold));
    EXPECT_EQ(files_of(path("run-" + fold)), files_of(path("whole-" + fold)));
  }
  EXPECT_EQ(*tensors("run-tf").at("conv1/weights_quant/num_dampened").data<float>(), 12);
  expect_text(bytes_of(path("run-tf/train_graph.json")), {"\"dampening\": 0.5, \"dampening_steps\": 12"});
  expect_success(train_dampened("without", "0", {"--bn-fold", "tf"}));
  EXPECT_NE(checkpoint_bytes("without"), checkpoint_bytes("whole-tf"));
  EXPECT_FALSE(tensors("without").contains("conv1/weights_quant/num_dampened"));
  for (const char* command : {"eval", "verify"}) {
    Arguments line = {command, "--run", "run-tf", "--threads", "1"};
    line.push_back(command == std::string("eval") ? "--integer" : "--no-runtimes");
    expect_success(program(line));
  }
}

// The pull grows over the steps of the run. A longer run was refused: its graph has another number of them.
TEST_F(DampeningTest, GoesOnLonger) {
  const auto graph = [this](const char* file) { return bytes_of(path("run") / file); };
  expect_success(train_dampened("whole", "0.5", {"--steps", "20"}));
  expect_success(train_dampened("run", "0.5"));
  const std::string shorter = graph("train_graph.json");
  expect_success(resume("run", "--steps 20 --stop-at 16"));
  for (const char* file : {"train_graph.json", "eval_graph.json"})
    EXPECT_EQ(graph(file), bytes_of(path("whole") / file));
  // As if it had died before it wrote the graphs.
  std::ofstream(path("run/train_graph.json"), std::ios::binary) << shorter;
  expect_success(resume("run"));
  EXPECT_EQ(graph("train_graph.json"), bytes_of(path("whole/train_graph.json")));
  EXPECT_EQ(*tensors("run").at("conv1/weights_quant/num_dampened").data<float>(), 20);
}

TEST_F(DampeningTest, AnotherModelIsRefusedAllTheSame) {
  expect_success(train_dampened("run", "0.5"));
  std::string edited = bytes_of(path("run/train_graph.json"));
  const std::size_t bits = edited.find("\"bits\": 3");
  ASSERT_NE(bits, std::string::npos);
  edited.replace(bits, 9, "\"bits\": 4");
  std::ofstream(path("run/train_graph.json"), std::ios::binary) << edited;
  expect_error(resume("run", "--steps 20"), 1, {"train_graph.json", "the model has changed"});
}

}  // namespace
}  // namespace miniqat::testing::dampening_test
