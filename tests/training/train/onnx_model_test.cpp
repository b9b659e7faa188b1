#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "core/engine/session.h"
#include "tests/errors.h"
#include "tests/importers/onnx/node_chain.h"
#include "tests/training/run_fixture.h"
#include "training/model_source.h"
#include "training/run/init_checkpoint.h"
#include "training/run/run_source.h"
#include "training/settings/given_settings.h"

namespace miniqat::training::onnx_model_test {
namespace {

using importers::import_test::NodeChain;
using testing::error_of;
using testing::mentions;

struct Listener : RunObserver {
  void warn(const std::string& text) override { texts.push_back(text); }
  std::vector<std::string> texts;
};

class OnnxModel : public RunFixture {
 protected:
  /// The settings for a classifier into ten classes, of pictures [batch, 1, height, width]; 0 is open.
  TrainSettings settings_of(std::int64_t batch, std::int64_t height, std::int64_t width) {
    nets_.push_back(std::make_unique<NodeChain>(std::vector{batch, std::int64_t{1}, height, width}));
    NodeChain& net = *nets_.back();
    net.constant("w", {10, 1, 3, 3});
    net.add("Conv", {"w"});
    net.add("GlobalAveragePool");
    net.add("Flatten");
    net.write();
    TrainSettings settings = this->settings();
    settings.model = net.path().string();
    settings.float_only = true;
    settings.steps = 2;
    return settings;
  }

  std::vector<std::unique_ptr<NodeChain>> nets_;
};

TEST_F(OnnxModel, AnOpenSizeIsThatOfThePictures) {
  RunObserver silent;
  for (const auto& [height, width] : {std::pair{0, 0}, {0, 8}, {8, 8}}) {
    const std::string name = concat("run", height, "x", width);
    EXPECT_EQ(error_of([&, settings = settings_of(0, height, width)] { train_new(name, settings, silent); }), "")
        << name;
    const Graph graph = read_network(RunDirectory::open(path(name)).train_graph());
    EXPECT_EQ(find_images(graph, name).shape(), (Shape{4, 8, 8, 1}));
  }
  EXPECT_TRUE(mentions(error_of([&] { train_new("other", settings_of(0, 6, 0), silent); }),
                       {",6,8,1]", "the pictures of mnist are [8,8,1]"}));
}

TEST_F(OnnxModel, ANoteSaysThatTheFileFixesTheBatch) {
  TrainSettings open = settings_of(0, 0, 0);
  open.batch_size = 128;
  EXPECT_EQ(adopt_batch_size(open), "");
  EXPECT_EQ(open.batch_size, 128);
  TrainSettings single = settings_of(1, 8, 8);
  single.batch_size = 16;
  EXPECT_EQ(adopt_batch_size(single), "note: " + single.model +
                                          " takes one picture at a time; it is trained with batches of 16 "
                                          "(--batch-size)");
  EXPECT_EQ(single.batch_size, 16);
  TrainSettings fixed = settings_of(2, 8, 8);
  const std::string note = adopt_batch_size(fixed);
  EXPECT_EQ(note, "note: batches of 2, as " + fixed.model + " fixes: --batch-size changes it");
  EXPECT_EQ(fixed.batch_size, 2);
  Listener listener;
  train(fixed, RunDirectory::fresh(path("run"), "none"), {.notes = {note}}, listener);
  EXPECT_EQ(std::ranges::count(listener.texts, note), 1);
  // A constant may be an input, too, and come first.
  NodeChain old({7, 1}, 7);
  old.constant("w", {1, 10});
  old.add("MatMul", {"w"});
  old.graph().add_input()->set_name("w");
  old.graph().mutable_input()->SwapElements(0, 1);
  old.write();
  EXPECT_EQ(importers::fixed_batch(old.path()), 7);
  old.graph().clear_input();
  old.write();
  EXPECT_TRUE(mentions(error_of([&] { importers::fixed_batch(old.path()); }), {"net.onnx", "no input"}));
}

TEST_F(OnnxModel, ANetworkWithoutVariablesStartsFromNone) {
  NodeChain net({1, 3, 2, 2});
  net.add("Relu");
  net.write();
  Graph graph = read_network(net.path());
  Session session(graph);
  EXPECT_EQ(error_of([&] { start_from(net.path(), session); }), "");
  const TrainSettings other = settings_of(1, 8, 8);
  EXPECT_TRUE(mentions(error_of([&] { start_from(other.model, session); }), {"no tensor has the name"}));
}

}  // namespace
}  // namespace miniqat::training::onnx_model_test
