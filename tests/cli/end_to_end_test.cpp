// Each task the whole way: trained in float, made integers of 8 and 4 bits, which LiteRT, ONNX Runtime, a page in a
// browser, C on an emulated board and Python see as the engine does.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/text/error.h"
#include "core/text/json.h"
#include "integer/format/model_file.h"
#include "tests/browser.h"
#include "tests/cli/program.h"
#include "tests/cli/tables.h"
#include "tests/datasets/sound/recordings.h"
#include "tests/exporters/c/board.h"
#include "tests/runtimes/judge.h"
#include "tests/source_dir.h"
#include "tests/training/report/judged_page.h"
#include "training/run/integer_source.h"
#include "training/run/run_source.h"

namespace miniqat::cli::end_to_end_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::OnBoard;
using testing::Recording;

/// Bits of weights and activations; a run is called "w8" or "w4", and so are its files.
constexpr int kWidths[] = {8, 4};
std::string name_of(int bits) { return concat("w", bits); }

/// A task with its data, its network and what must come out.
struct Way {
  /// As `--dataset` has it, with the flags that read it.
  std::string data;
  /// Network and schedule.
  std::string training;
  /// What decides, as JSON has it and in words.
  std::string measure;
  std::string in_words;
  /// Names of the outputs, where they have any.
  std::vector<std::string> outputs = {};
  /// The least of it in float and with 8 bits, and with 4.
  double least = 0;
  double least_of_4_bits = 0;
  /// How C makes examples of sounds, and the sounds.
  std::optional<exporters::CFrontEnd> front_end = {};
  std::vector<Recording> sounds = {};
};

class EndToEnd : public testing::ProgramTest {
 protected:
  void go(const Way& way) {
    make_runs(way);
    for (const int bits : kWidths)
      evaluated_[bits] = json::parse(run(concat("eval ", name_of(bits), " --integer --json")));
    EXPECT_GE(measured(run_json("eval float --json"), way), way.least);
    EXPECT_GE(measured(evaluated_[8], way), way.least);
    EXPECT_GE(measured(evaluated_[4], way), way.least_of_4_bits);
    expect_words_in_exports(way);
    ask_runtimes(way);
    ask_browser();
    ask_board(way);
    ask_python(way);
    if (!missing_.empty()) {
      if (std::getenv("CI") != nullptr) FAIL() << missing_;
      GTEST_SKIP() << missing_ << "; scripts/install-deps --ci and scripts/install-runtimes install all";
    }
  }

 private:
  /// Returns what the program prints, which has status 0. It may note things beside.
  std::string run(const std::string& line) const {
    const testing::Outcome outcome = program(line);
    EXPECT_EQ(outcome.status, 0) << line << "\n" << outcome.err;
    return outcome.out;
  }
  json run_json(const std::string& line) const { return json::parse(run(line)); }
  static double measured(const json& result, const Way& way) { return result.at(way.measure).get<double>(); }

  void make_runs(const Way& way) const {
    run(concat("train --dataset ", way.data, " ", way.training, " --batch-size 10 --threads 1 --float --out float"));
    for (const int bits : kWidths) {
      run(concat("quantize --run float --weight-bits ", bits, " --activation-bits ", bits,
                 " --epochs 4 --threads 1 --out ", name_of(bits)));
      run(concat("export ", name_of(bits), " --out ", name_of(bits), ".miniqat"));
      run(concat("export ", name_of(bits), " --out ", name_of(bits), ".c"));
    }
  }

  void expect_words_in_exports(const Way& way) const {
    for (const int bits : kWidths) {
      const std::string header = testing::bytes_of(path(name_of(bits) + ".h"));
      testing::expect_text(header, {way.in_words + " of the run on test examples: "});
      testing::expect_text(header, way.outputs);
      EXPECT_EQ(integer::read_model(path(name_of(bits) + ".miniqat")).class_names, way.outputs);
    }
  }

  /// `why` a judge is not there; empty when it is.
  bool is_there(const std::string& why) {
    if (!why.empty()) missing_ += concat(missing_.empty() ? "" : ", ", why);
    return why.empty();
  }

  void ask_runtimes(const Way& way) {
    if (!is_there(testing::why_no_runtimes())) return;
    for (const int bits : kWidths) {
      const json report = run_json(concat("verify ", name_of(bits), " --json --threads 1"));
      EXPECT_EQ(report["failed"], json::array());
      EXPECT_EQ(report["reference_equal"], true);
      std::vector<std::string> names;
      for (const json& score : report["runtimes"]) {
        const std::string name = score["name"];
        names.push_back(name.substr(0, name.find(' ')));
        std::printf("  %s %s: %s\n", name_of(bits).c_str(), name.c_str(), score["outputs"].dump().c_str());
        // The runtimes round some means and ties otherwise (docs/integer-arithmetic.md).
        EXPECT_LE(score["outputs"]["largest_difference"], 2) << score;
        EXPECT_GE(score["outputs"]["share"], 0.9) << score;
        EXPECT_NEAR(measured(score, way), measured(evaluated_[bits], way), 0.07) << "one of few examples";
      }
      // TensorFlow Lite has activations of 8 bits alone.
      const std::vector<std::string> onnx = {"onnxruntime"}, both = {"LiteRT", "onnxruntime"};
      EXPECT_EQ(names, bits == 8 ? both : onnx);
      EXPECT_EQ(report["left_out"].size(), bits == 8 ? 0 : 1) << report["left_out"];
    }
  }

  void ask_browser() {
    run("report float w8 w4 --threads 1 --out page.html");
    if (!is_there(testing::has_browser() ? "" : "no browser")) return;
    const json found =
        testing::expect_no_complaint(testing::visit(testing::judged_page(testing::bytes_of(path("page.html")))));
    EXPECT_GT(found.value("drawnExamples", 0), 0) << found;
  }

  void ask_board(const Way& way) {
    const testing::BoardTarget& target = testing::kBoardTargets[0];
    const std::string missing = testing::missing_tools(target);
    if (!is_there(missing.empty() ? "" : "no " + missing)) return;
    testing::Board board;
    for (const int bits : kWidths) {
      const std::string name = name_of(bits);
      OnBoard exported{.model = integer::read_model(path(name + ".miniqat")), .front_end = way.front_end};
      for (const Recording& sound : way.sounds)
        exported.sounds.insert(exported.sounds.end(), sound.begin(), sound.end());
      const datasets::Dataset test = training::load_data(training::open_run(path(name), ""), "", "").test;
      if (!way.front_end)
        exported.images = training::input_batch(test, exported.model.tensor(exported.model.input).grid, 0, test.size());
      board.add(name, exported, testing::bytes_of(path(name + ".h")), testing::bytes_of(path(name + ".c")));
    }
    for (const auto& [name, numbers] : board.expect_integers(target)) EXPECT_GT(numbers.size(), 4u) << name;
  }

  void ask_python(const Way& way) {
    const fs::path folder = fs::path(testing::program_path()).parent_path() / "../python";
    const testing::EnvironmentVariable place("PYTHONPATH", folder.c_str());
    const auto python = [&](const testing::Arguments& words) {
      return testing::Program(testing::Program::Line{testing::Arguments{"/usr/bin/python3"} + words}, place_.path())
          .wait();
    };
    if (!is_there(python({"-c", "import miniqat"}).status == 0 ? "" : "no Python module")) return;
    const testing::Outcome outcome =
        python({source_dir() / "tests/cli/evaluate.py", way.data, "w8.miniqat", "w4.miniqat"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const json found = json::parse(outcome.out);
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_TRUE(found[i].contains(way.measure)) << found[i];
      for (const auto& [key, value] : found[i].items()) EXPECT_EQ(value, evaluated_[kWidths[i]].at(key)) << key;
    }
    EXPECT_EQ(found.size(), std::size(kWidths));
  }

  std::map<int, json> evaluated_;
  std::string missing_;
};

TEST_F(EndToEnd, Classify) {
  const std::vector<Recording> tests = testing::write_tones(place_, "tones");
  go({.data = "tones --sample-rate 8000 --seconds 0.3",
      .training = "--model ds_cnn --width 0.25 --epochs 40",
      .measure = "accuracy",
      .in_words = "Accuracy",
      .outputs = {"high", "low"},
      .least = 0.85,
      .least_of_4_bits = 0.75,
      .front_end = exporters::CFrontEnd{.rate = 8000, .window = 320, .stride = 160, .steps = 14},
      .sounds = {tests[0], tests[1], tests[10], tests[11]}});
}

TEST_F(EndToEnd, Regress) {
  testing::write_tables(place_);
  go({.data = "sums.csv --target sum",
      .training = "--model mlp --width 0.25 --epochs 30",
      .measure = "r2",
      .in_words = "R^2",
      .outputs = {"sum"},
      .least = 0.95,
      .least_of_4_bits = 0.8});
}

/// Windows of a sound, of which C makes the same integers.
TEST_F(EndToEnd, Reconstruct) {
  testing::write_machine(place_, "pump");
  Recording normal = testing::machine_hum(20, 0), broken = testing::machine_hum(30, 6000);
  for (Recording* one : {&normal, &broken}) one->resize(96);
  go({.data = "pump --frames 2 --sample-rate 8000 --window-ms 8 --stride-ms 4 --bands 4",
      .training = "--model autoencoder --width 0.25 --epochs 20",
      .measure = "auc",
      .in_words = "AUC",
      .least = 0.9,
      .least_of_4_bits = 0.8,
      .front_end = exporters::CFrontEnd{.rate = 8000,
                                        .window = 64,
                                        .stride = 32,
                                        .steps = 2,
                                        .bands = 4,
                                        .coefficients = 0,
                                        .low_hz = 0,
                                        .high_hz = 4000},
      .sounds = {normal, broken}});
}

TEST_F(EndToEnd, Multilabel) {
  testing::write_tables(place_);
  go({.data = "flags.csv --target up,right",
      .training = "--model mlp --width 0.25 --epochs 20",
      .measure = "label_accuracy",
      .in_words = "Label accuracy",
      .outputs = {"up", "right"},
      .least = 0.85,
      .least_of_4_bits = 0.8});
}

}  // namespace
}  // namespace miniqat::cli::end_to_end_test
