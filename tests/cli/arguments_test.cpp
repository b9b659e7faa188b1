// What a user gets wrong on the command line or in files: one line on stderr that names it, status 2 for the line, 1
// for everything else.

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <sstream>

#include "core/files/safetensors.h"
#include "core/text/error.h"
#include "tests/cli/program.h"
#include "tests/cli/tiny_task.h"
#include "tests/fewer_cases.h"

namespace miniqat::testing::arguments_test {
namespace {

namespace fs = std::filesystem;

class ArgumentsTest : public ProgramTest {
 protected:
  void refuses(const Arguments& line, int status, const std::vector<std::string>& parts) const {
    SCOPED_TRACE(::testing::PrintToString(line));
    expect_error(program(line), status, parts);
  }
};

TEST_F(ArgumentsTest, EveryCommandExplainsItsFlags) {
  const std::map<std::string, Arguments> flags = {
      {"train",
       "--model --dataset --data-dir --weight-bits --activation-bits --quant-delay --epochs --out --float --batch-size "
       "--learning-rate --momentum --weight-decay --optimizer --schedule --seed --threads --symmetric --per-channel "
       "--freeze-bn-delay --ema-decay --scope --width --init-checkpoint --resume --steps --no-shuffle --config "
       "--stop-at --log-every --verbose --profile --bits-config --augment --bn-fold --float-pools --save-every "
       "--overwrite"},
      {"eval",
       "--run --model --dataset --data-dir --checkpoint --split --examples --integer --json --by-class --wrong"},
      {"predict", "RUN PICTURE --run --dataset --split --checkpoint --integer --top --json"},
      {"runs", "DIR --commands --json"},
      {"export", "--run --format --out --checkpoint --float-io --prefix --test-vectors --input-scale"},
      {"verify",
       "--run --examples --runtimes --no-runtimes --max-accuracy-difference --min-agreement --max-steps "
       "--min-runtime-agreement --out --json --c"},
      {"report", "RUN --out --dataset --data-dir --sensitivity --pictures --examples --threads"},
      {"rewrite",
       "--graph --mode --weight-bits --quant-delay --out --report --strict --bits-config --bn-fold --freeze-bn-delay "
       "--float-pools --symmetric-weights"},
      {"run",
       "--graph --fetch --feeds --checkpoint --train --step --gradients-of --out --random-feeds RUN --run --index "
       "--dataset --data-dir --split"},
      {"inspect", "GRAPH --dot --diff"},
      {"bench", "--threads --quick --kernels-only --steps-only --models --elements --batch-size --out"},
      {"models", "--model --out --width --batch-size --image-size --classes --count"}};
  const Outcome all = expect_success(program("--help"));
  expect_text(all.out, {"MINIQAT_DATA_DIR", "MINIQAT_MAX_ISA", "MINIQAT_GUARD", "OMP_NUM_THREADS"});
  for (const auto& [command, names] : flags) {
    expect_text(all.out, {command});
    const Outcome help = expect_success(program({command, "--help-all"}));
    EXPECT_EQ(help.out.find("Excludes:"), std::string::npos) << command;
    expect_text(help.out, names);
  }
  expect_text(program("inspect --help").out, {"inspect [OPTIONS] GRAPH [GRAPH]\n"});
}

/// Every flag of a command that takes a value, as its help shows them.
std::vector<std::string> flags_with_values(const std::string& help) {
  std::vector<std::string> flags;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string flag, value;
    words >> flag >> value;
    const bool takes = value.starts_with("TEXT") || value.starts_with("INT") || value.starts_with("FLOAT") ||
                       value.starts_with("UINT") || value.ends_with("FILE") || value == "[FILE]" || value == "RUN";
    if (flag.starts_with("--") && takes) flags.push_back(flag);
  }
  return flags;
}

// A shell gives an empty word for a variable that is not set; it must not mean the default.
TEST_F(ArgumentsTest, NoFlagTakesAnEmptyValue) {
  OneIn chosen(4);
  std::size_t checked = 0;
  for (const std::string command : {"train", "calibrate", "reestimate", "sensitivity", "eval", "predict", "rewrite",
                                    "run", "inspect", "models", "export", "verify", "bench"})
    for (const std::string& flag : flags_with_values(program({command, "--help-all"}).out)) {
      ++checked;
      if (!chosen()) continue;
      refuses({command, flag, ""}, 2, {"miniqat " + command + ": ", flag + " must not be empty"});
      refuses({command, flag + "=", "--help"}, 2, {flag + " must not be empty"});
      refuses({command, flag, ","}, 2, {flag + " must not be empty"});
    }
  EXPECT_GT(checked, 80u);
  refuses({"inspect", ""}, 2, {"an argument must not be empty"});
  refuses({""}, 2, {"miniqat: an argument must not be empty"});
}

// `train --out --help` trained, into a folder of that name.
TEST_F(ArgumentsTest, NoFlagTakesAnotherFlagForItsValue) {
  OneIn chosen(4);
  std::size_t checked = 0;
  for (const std::string command : {"train", "quantize", "eval", "run", "export", "report", "import"})
    for (const std::string& flag : flags_with_values(program({command, "--help-all"}).out)) {
      // That of --profile may be left out; two names of one flag stand in one word of the help.
      if (flag == "--profile" || flag.find(',') != std::string::npos) continue;
      ++checked;
      if (chosen()) refuses({command, flag, "--help"}, 2, {"miniqat " + command + ": ", flag});
    }
  EXPECT_GT(checked, 60u);
  refuses("train --out --help", 2, {"--out needs a value, and \"--help\" looks like a flag; ./--help names such a"});
  refuses("train --stop-at --help", 2, {"--stop-at needs a value, and \"--help\" looks like a flag (see"});
  refuses("train --out=--overwrite", 2, {"--out needs a value", "./--overwrite"});
  refuses("export --out m.c --prefix --name", 2, {"--prefix needs a value"});
  EXPECT_TRUE(fs::is_empty(place_.path()));
  refuses("eval --run ./--help", 1, {"./--help holds no run"});
}

// The parser makes the nearest number of 64 bits of it, and `--stop-at` was that.
TEST_F(ArgumentsTest, ANumberBeyond64BitsIsNamedAsItWasTyped) {
  const std::string typed = "99999999999999999999";
  for (const char* flag : {"--steps", "--seed", "--stop-at", "--threads", "--batch-size"})
    for (const std::string& value : {typed, "-" + typed})
      refuses({"train", flag, value}, 2, {flag, "must be a whole number that 64 bits hold, got \"" + value + "\""});
  refuses({"bench", "--elements", "64," + typed}, 2, {"--elements", typed});
  refuses("train --learning-rate 1e400", 2, {"--learning-rate must be a number that 64 bits hold, got \"1e400\""});
  // It would be 0.
  for (const std::string value : {"1e-400", "+0.1E-999", "-1e-400"})
    refuses({"train", "--learning-rate", value}, 2,
            {"--learning-rate must be a number that 64 bits hold, got \"" + value + "\""});
  refuses("train --weight-decay 0.0e-400 --learning-rate 1e400", 2, {"--learning-rate must be a number that 64 bits"});
  refuses("train --learning-rate inf", 2, {"--learning-rate must be a finite number"});
}

TEST_F(ArgumentsTest, HelpIsAWordOrAFlag) {
  for (const Arguments& command : {Arguments{}, Arguments("train"), Arguments("eval")}) {
    Arguments as_flag = command, as_word = command;
    as_flag.emplace_back("--help");
    as_word.insert(as_word.begin(), "help");
    const Outcome flag = program(as_flag), word = program(as_word);
    EXPECT_EQ(flag.status, 0);
    EXPECT_EQ(word.status, 0) << word.err;
    EXPECT_EQ(word.out, flag.out);
  }
  expect_text(program("help").out, {"miniqat help COMMAND"});
  // A flag without its value does not take the --help for it: help never begins a run.
  EXPECT_EQ(program("help train --out").out, program("train --help").out);
  EXPECT_EQ(program("help train --help-all").out, program("train --help-all").out);
  for (const char* all : {"--help-all", "help --help-all"}) EXPECT_EQ(program(all).out, program("--help").out);
  refuses("help trian", 2, {"\"trian\"", "did you mean \"train\""});
}

// The status of a process. Other lines that are refused are in refusals_test.cpp.
TEST_F(ArgumentsTest, WrongWordsFlagsAndSettingsEndWithStatus2) {
  const std::pair<const char*, const char*> cases[] = {
      {"trian", "miniqat: unknown command \"trian\"; did you mean \"train\"?"},
      {"train --weight-bits 17", "miniqat train: --weight-bits must be 2 to 16, not 17"}};
  for (const auto& [line, text] : cases) expect_error(started(line, place_.path()), 2, {text});
  const Outcome alone = started({}, place_.path());
  EXPECT_EQ(alone.status, 2);
  expect_text(alone.err, {"Usage: miniqat"});
}

/// Every command that has --run. (Two that differ: refusals_test.cpp.)
TEST_F(ArgumentsTest, ARunIsAWordOrAFlag) {
  for (const char* command : {"eval", "run --fetch a,b --out o", "verify", "export --out m.json", "calibrate --out ptq",
                              "quantize --out qat", "reestimate", "sensitivity --out table --bits 2,4"})
    for (const char* run : {"nowhere", "nowhere --run nowhere"})
      refuses(command + Arguments(run), 1, {"nowhere holds no run"});
}

TEST_F(ArgumentsTest, ConfigFilesThatAreNoneAreNamed) {
  place_.write("c.json", "{\"steps\": ");
  refuses("train --config c.json", 1, {"c.json"});
  refuses("train --config nowhere.json", 1, {"nowhere.json"});
}

// Each kind of damage: tests/datasets.
TEST_F(ArgumentsTest, DataThatCannotBeReadIsNamed) {
  write_tiny_digits(place_, "digits", 8, 4);
  place_.write("tiny.json", tiny_classifier());
  const auto refuses_data = [&](const std::vector<std::string>& parts) {
    refuses("train --model tiny.json --dataset mnist --data-dir digits --threads 1 --out run", 1, parts);
    EXPECT_FALSE(fs::exists(path("run/config.json")));
  };
  const std::string images = bytes_of(path("digits/train-images-idx3-ubyte"));
  place_.write("digits/train-images-idx3-ubyte", images.substr(0, images.size() - 1));
  refuses_data({"train-images-idx3-ubyte", "cut short"});
  fs::remove(path("digits/train-images-idx3-ubyte"));
  refuses_data({"train-images-idx3-ubyte", "digits"});
  refuses("train --dataset mnist", 1, {"mnist", "--data-dir"});
  refuses("train --dataset cifar10 --data-dir nowhere", 1, {"cifar10", "nowhere"});
  refuses("train --dataset cifar10 --data-dir digits", 1, {"cifar10", "digits", "data_batch_1.bin"});
}

TEST_F(ArgumentsTest, ModelFilesMustFitTheData) {
  write_tiny_digits(place_, "digits", 8, 4);
  const auto refuses_model = [&](const std::string& from, const std::string& to, const Arguments& more,
                                 const std::vector<std::string>& parts) {
    std::string text = tiny_classifier();
    const std::size_t place = text.find(from);
    ASSERT_NE(place, std::string::npos) << from;
    place_.write("model.json", text.replace(place, from.size(), to));
    refuses("train --model model.json --dataset mnist --data-dir digits --out run" + more, 1, parts);
  };
  refuses_model("8, 8, 1", "8, 8, 1", {"--batch-size", "2"}, {"model.json", "batches of 4", "--batch-size is 2"});
  refuses_model("8, 8, 1", "8, 9, 1", {}, {"model.json"});
  refuses_model("\"outputs\": [\"fc/BiasAdd\"]", "\"outputs\": []", {}, {"model.json", "outputs"});
  refuses_model("\"outputs\": [\"fc/BiasAdd\"]", "\"outputs\": [\"pool1\"]", {}, {"model.json", "pool1", "logits"});
  refuses("train --model nowhere.json", 1, {"nowhere.json"});
  refuses("train --model lenet5 --dataset mnist --data-dir digits --batch-size 4", 1, {"conv2/Conv2D"});
}

/// A short run, and what becomes of it with another checkpoint.
class CheckpointTest : public ArgumentsTest {
 protected:
  void SetUp() override {
    write_tiny_digits(place_, "digits", 16, 4);
    place_.write("tiny.json", tiny_classifier());
    expect_success(program(
        "train --model tiny.json --dataset mnist --data-dir digits --threads 1 --steps 4 --stop-at 2 --out run"));
    good_ = bytes_of(checkpoint());
  }

  fs::path checkpoint() const { return path("run/checkpoint.safetensors"); }

  /// Neither eval nor train --resume takes the run's checkpoint as it is now; the file stays as it is.
  void both_refuse(const std::vector<std::string>& parts) const {
    const std::string bytes = bytes_of(checkpoint());
    std::vector<std::string> named = parts;
    named.push_back("run/checkpoint.safetensors");
    refuses("eval --run run --threads 1", 1, named);
    refuses("train --resume --out run", 1, named);
    EXPECT_EQ(bytes_of(checkpoint()), bytes);
  }
  template <class Change>
  void both_refuse_changed(const Change& change, const std::vector<std::string>& parts) const {
    place_.write("run/checkpoint.safetensors", good_);
    Safetensors content = read_safetensors(checkpoint());
    change(content.tensors);
    write_safetensors(checkpoint(), content);
    both_refuse(parts);
  }

  std::string good_;
};

TEST_F(CheckpointTest, OnesThatWereCutShortAreRefused) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{7}, std::size_t{100}, good_.size() - 1}) {
    SCOPED_TRACE(size);
    place_.write("run/checkpoint.safetensors", good_.substr(0, size));
    both_refuse({});
  }
  fs::remove(checkpoint());
  refuses("eval --run run", 1, {"run/checkpoint.safetensors"});
  refuses("train --resume --out run", 1, {"run/checkpoint.safetensors"});
}

// Each kind of difference: tests/core/engine/session_checkpoint_test.cpp.
TEST_F(CheckpointTest, OnesWithOtherVariablesAreRefused) {
  both_refuse_changed([](NamedTensors& all) { all.erase("fc/weights"); }, {"\"fc/weights\" is missing"});
  both_refuse_changed([](NamedTensors& all) { all["fc/biases"] = Tensor(Shape{11}); }, {"fc/biases", "[11]", "[10]"});
  both_refuse_changed(
      [](NamedTensors& all) { all.at("fc/weights").data<float>()[3] = std::numeric_limits<float>::quiet_NaN(); },
      {"fc/weights"});
}

TEST_F(CheckpointTest, ResumingNeedsTheCounters) {
  const auto resume_refuses = [&](const std::string& name, const Tensor& value) {
    place_.write("run/checkpoint.safetensors", good_);
    Safetensors content = read_safetensors(checkpoint());
    content.tensors.erase(name);
    if (value.defined()) content.tensors[name] = value;
    write_safetensors(checkpoint(), content);
    refuses("train --resume --out run", 1, {"run/checkpoint.safetensors", name});
  };
  resume_refuses("session:step", {});
  resume_refuses("session:step", Tensor::scalar(std::int64_t{-1}));
  resume_refuses("session:quantization_step", Tensor::scalar(1.0f));
}

TEST_F(CheckpointTest, AStartingPointMustHaveSomethingInCommon) {
  write_safetensors(path("other.safetensors"), {.tensors = {{"other", Tensor(Shape{2})}}, .metadata = {}});
  const auto refuses_start = [&](const std::string& file, const std::vector<std::string>& parts) {
    refuses({"train", "--model", "tiny.json", "--dataset", "mnist", "--data-dir", "digits", "--threads", "1", "--steps",
             "1", "--init-checkpoint", file, "--out", "new"},
            1, parts);
    EXPECT_FALSE(fs::exists(path("new/config.json")));
  };
  refuses_start("other.safetensors", {"other.safetensors", "no tensor"});
  refuses_start("nowhere.safetensors", {"nowhere.safetensors"});
  refuses_start("digits", {"digits", "no run"});
  refuses_start("tiny.json", {"tiny.json"});
}

TEST_F(CheckpointTest, DamagedRunsAreNamed) {
  place_.write("run/eval_graph.json", "{");
  refuses("eval --run run", 1, {"run/eval_graph.json"});
  place_.write("run/config.json", "{\"model\": 3}");
  refuses("eval --run run", 2, {"run/config.json", "model"});
  refuses("train --resume --out run", 2, {"run/config.json", "model"});
  fs::remove(path("run/config.json"));
  refuses("eval --run run", 1, {"run holds no run", "config.json"});
  refuses("eval --run nowhere", 1, {"nowhere"});
}

TEST_F(CheckpointTest, EvaluationNeedsFittingData) {
  write_tiny_digits(place_, "large", 8, 8, 9);
  refuses("eval --run run --data-dir large", 1, {"[4,8,8,1]", "[9,9,1]"});
}

}  // namespace
}  // namespace miniqat::testing::arguments_test
