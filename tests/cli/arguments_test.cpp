// What a user gets wrong on the command line or in files: one line on stderr that names it, status 2 for the line, 1
// for everything else.

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <sstream>

#include "core/error.h"
#include "core/safetensors.h"
#include "tests/cli/program.h"
#include "tests/cli/tiny_task.h"
#include "tests/fewer_cases.h"

namespace miniqat::testing::arguments_test {
namespace {

namespace fs = std::filesystem;

class ArgumentsTest : public ::testing::Test {
 protected:
  Outcome program(const Arguments& line) const { return miniqat(line, place_.path()); }
  void refuses(const Arguments& line, int status, const std::vector<std::string>& parts) const {
    SCOPED_TRACE(::testing::PrintToString(line));
    expect_error(program(line), status, parts);
  }

  TempDir place_;
};

TEST_F(ArgumentsTest, EveryCommandExplainsItsFlags) {
  const std::map<std::string, std::vector<std::string>> flags = {
      {"train", {"--model",         "--dataset",    "--data-dir",     "--weight-bits",     "--activation-bits",
                 "--quant-delay",   "--epochs",     "--out",          "--float",           "--batch-size",
                 "--learning-rate", "--momentum",   "--weight-decay", "--optimizer",       "--schedule",
                 "--seed",          "--threads",    "--symmetric",    "--per-channel",     "--freeze-bn-delay",
                 "--ema-decay",     "--scope",      "--width",        "--init-checkpoint", "--resume",
                 "--steps",         "--no-shuffle", "--config",       "--stop-at",         "--log-every",
                 "--verbose",       "--profile",    "--bits-config",  "--augment",         "--bn-fold",
                 "--float-pools",   "--save-every", "--overwrite"}},
      {"eval",
       {"--run", "--model", "--dataset", "--data-dir", "--checkpoint", "--split", "--examples", "--integer", "--json",
        "--by-class", "--wrong"}},
      {"predict", {"RUN", "PICTURE", "--run", "--dataset", "--split", "--checkpoint", "--integer", "--top", "--json"}},
      {"runs", {"DIR", "--json"}},
      {"export",
       {"--run", "--format", "--out", "--checkpoint", "--float-io", "--prefix", "--test-vectors", "--input-scale"}},
      {"verify",
       {"--run", "--examples", "--runtimes", "--no-runtimes", "--max-accuracy-difference", "--min-agreement",
        "--max-steps", "--min-runtime-agreement", "--out", "--json", "--c"}},
      {"report", {"RUN", "--out", "--dataset", "--data-dir", "--sensitivity", "--pictures", "--examples", "--threads"}},
      {"rewrite",
       {"--graph", "--mode", "--weight-bits", "--quant-delay", "--out", "--report", "--strict", "--bits-config",
        "--bn-fold", "--freeze-bn-delay", "--float-pools", "--symmetric-weights"}},
      {"run",
       {"--graph", "--fetch", "--feeds", "--checkpoint", "--train", "--step", "--gradients-of", "--out",
        "--random-feeds", "RUN", "--run", "--index", "--dataset", "--data-dir", "--split"}},
      {"inspect", {"inspect [OPTIONS] GRAPH [GRAPH]\n", "--dot", "--diff"}},
      {"bench",
       {"--threads", "--quick", "--kernels-only", "--steps-only", "--models", "--elements", "--batch-size", "--out"}},
      {"models", {"--model", "--out", "--width", "--batch-size", "--image-size", "--classes"}}};
  const Outcome all = program({"--help"});
  expect_success(all);
  for (const char* variable : {"MINIQAT_DATA_DIR", "MINIQAT_MAX_ISA", "MINIQAT_GUARD", "OMP_NUM_THREADS"})
    EXPECT_NE(all.out.find(variable), std::string::npos) << variable;
  for (const auto& [command, names] : flags) {
    EXPECT_NE(all.out.find(command), std::string::npos) << command;
    const Outcome help = program({command, "--help-all"});
    expect_success(help);
    EXPECT_EQ(help.out.find("Excludes:"), std::string::npos) << command;
    for (const std::string& name : names) EXPECT_NE(help.out.find(name), std::string::npos) << command << " " << name;
  }
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

TEST_F(ArgumentsTest, WithoutACommandTheHelpIsShown) {
  const Outcome outcome = program({});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("Usage: miniqat"), std::string::npos) << outcome.err;
}

TEST_F(ArgumentsTest, HelpIsAWordOrAFlag) {
  for (const Arguments& command : {Arguments{}, Arguments{"train"}, Arguments{"eval"}}) {
    Arguments as_flag = command, as_word = command;
    as_flag.emplace_back("--help");
    as_word.insert(as_word.begin(), "help");
    const Outcome flag = program(as_flag), word = program(as_word);
    EXPECT_EQ(flag.status, 0);
    EXPECT_EQ(word.status, 0) << word.err;
    EXPECT_EQ(word.out, flag.out);
  }
  EXPECT_NE(program({"help"}).out.find("miniqat help COMMAND"), std::string::npos);
  refuses({"help", "trian"}, 2, {"\"trian\"", "did you mean \"train\""});
}

TEST_F(ArgumentsTest, UnknownWordsAreUsageErrors) {
  refuses({"trian"}, 2, {"\"trian\"", "did you mean \"train\""});
  refuses({"--verbos"}, 2, {"--verbos"});
  refuses({"train", "--weight-bit", "4"}, 2, {"--weight-bit", "did you mean \"--weight-bits\""});
  refuses({"train", "surplus"}, 2, {"surplus"});
  refuses({"train", "--steps"}, 2, {"--steps"});
  refuses({"train", "--model", "lenet6"}, 2, {"lenet6", "lenet5"});
  refuses({"train", "--dataset", "mnits"}, 2, {"mnits", "fashion-mnist"});
  refuses({"train", "--optimizer", "sdg"}, 2, {"sdg", "adam"});
  refuses({"train", "--schedule", "cosin"}, 2, {"cosin", "exponential"});
  refuses({"models", "--model", "alexnet"}, 2, {"alexnet", "lenet5"});
  EXPECT_FALSE(fs::exists(place_.path() / "runs"));
}

TEST_F(ArgumentsTest, MissingFlagsAreUsageErrors) {
  refuses({"eval"}, 2, {"--run", "(see miniqat eval --help)"});
  refuses({"export", "--out", "m.c"}, 2, {"--run is required: RUN or --run RUN (see miniqat export --help)"});
  refuses({"calibrate", "--out", "ptq"}, 2, {"(see miniqat calibrate --help)"});
  refuses({"train", "--resume"}, 2, {"--out names the run to go on with", "(see miniqat train --help)"});
  refuses({"rewrite"}, 2, {"--graph"});
  refuses({"run", "--graph", "g.json"}, 2, {"--out"});
  refuses({"inspect"}, 2, {"GRAPH"});
  refuses({"models", "--out", "g.json"}, 2, {"--model"});
  refuses({"models", "--image-size", "32"}, 2, {"--model"});
}

/// Every command that has --run.
TEST_F(ArgumentsTest, ARunIsAWordOrAFlag) {
  const std::vector<Arguments> commands = {{"eval"},
                                           {"run", "--fetch", "a,b", "--out", "o"},
                                           {"verify"},
                                           {"export", "--out", "m.json"},
                                           {"calibrate", "--out", "ptq"},
                                           {"quantize", "--out", "qat"},
                                           {"reestimate"},
                                           {"sensitivity", "--out", "table", "--bits", "2,4"}};
  for (Arguments line : commands) {
    const Arguments command = line;
    line.push_back("nowhere");
    refuses(line, 1, {"nowhere holds no run"});
    line.insert(line.end(), {"--run", "nowhere"});
    refuses(line, 1, {"nowhere holds no run"});
    line.back() = "elsewhere";
    refuses(line, 2, {R"(two runs are given: "nowhere" and --run "elsewhere")"});
    line = command;
    line.insert(line.end(), {"nowhere", "elsewhere"});
    refuses(line, 2, {R"(unknown argument "elsewhere")"});
    refuses(command, 2, {"--run"});
  }
}

TEST_F(ArgumentsTest, NumbersOutOfRangeAreUsageErrors) {
  const auto refuses_setting = [&](const std::string& flag, const std::string& value, const std::string& name) {
    refuses({"train", flag, value}, 2, {name});
  };
  for (const std::string value : {"1", "17", "-4", "abc", "8.5", "99999999999"}) {
    refuses_setting("--weight-bits", value, "--weight-bits");
  }
  refuses_setting("--activation-bits", "1", "--activation-bits must be");
  for (const std::string rate : {"-0.1", "nan", "inf", "-inf", "1e300", "fast"}) {
    refuses_setting("--learning-rate", rate, "--learning-rate");
  }
  refuses_setting("--weight-decay", "nan", "--weight-decay");
  refuses_setting("--momentum", "1", "--momentum must");
  refuses_setting("--ema-decay", "1.5", "--ema-decay must");
  refuses_setting("--quant-delay", "-1", "--quant-delay must");
  refuses_setting("--epochs", "0", "--epochs");
  refuses_setting("--epochs", "9000000000000000000", "--epochs");
  refuses_setting("--steps", "-1", "--steps");
  refuses_setting("--warmup-steps", "9223372036854775807", "--warmup-steps");
  refuses_setting("--batch-size", "0", "--batch-size");
  refuses_setting("--threads", "-1", "--threads");
  refuses_setting("--seed", "-1", "--seed");
  refuses_setting("--width", "nan", "--width");
  refuses_setting("--log-every", "0", "--log-every");
  refuses({"models", "--model", "lenet5", "--width", "nan"}, 2, {"--width"});
  refuses({"models", "--model", "lenet5", "--batch-size", "0"}, 2, {"--batch-size"});
  refuses({"models", "--model", "resnet20", "--image-size", "0"}, 2, {"--image-size"});
  refuses({"models", "--model", "resnet20", "--image-size", "4097"}, 2, {"--image-size"});
  refuses({"models", "--model", "lenet5", "--image-size", "8"}, 2, {"[Conv2D \"conv2/Conv2D\"]"});
  EXPECT_FALSE(fs::exists(place_.path() / "runs"));
}

TEST_F(ArgumentsTest, ConfigFilesAreChecked) {
  const auto refuses_config = [&](const std::string& text, int status, const std::vector<std::string>& parts) {
    SCOPED_TRACE(text);
    place_.write("c.json", text);
    refuses({"train", "--config", "c.json"}, status, parts);
  };
  refuses_config(R"({"weight_bit": 4})", 2, {"c.json", "weight_bit", "did you mean \"weight_bits\""});
  refuses_config(R"({"weight_bits": "4"})", 2, {"c.json", "weight_bits", "\"4\""});
  refuses_config(R"({"weight_bits": 4294967300})", 2, {"weight_bits", "4294967300"});
  refuses_config(R"({"steps": 18446744073709551615})", 2, {"steps", "18446744073709551615"});
  refuses_config(R"({"momentum": null})", 2, {"momentum", "null"});
  refuses_config(R"({"float": 1})", 2, {"float"});
  // What a flag may not say, a file may not, either.
  refuses_config(R"({"weight_bits": 17})", 2, {"--weight-bits must be 2 to 16, not 17"});
  refuses_config(R"({"freeze_bn_delay": -1})", 2, {"--freeze-bn-delay must be"});
  refuses_config(R"({"batch_size": 0})", 2, {"--batch-size must be"});
  refuses_config(R"({"label_smoothing": 1})", 2, {"--label-smoothing must be in [0, 1), got 1"});
  refuses_config(R"({"label_smoothing": -0.5})", 2, {"--label-smoothing must be in [0, 1), got -0.5"});
  refuses_config(R"({"threads": 1025})", 2, {"--threads must be"});
  refuses_config(R"({"schedule": "step", "schedule_every": 0})", 2, {"--schedule-every must be"});
  refuses_config(R"({"schedule": "step", "schedule_factor": 2})", 2, {"--schedule-factor must be"});
  refuses_config(R"({"warmup_steps": 6, "steps": 6})", 2, {"--warmup-steps must be less than the run's 6 steps"});
  refuses_config(R"({"nesterov": true, "momentum": 0})", 2, {"--nesterov needs momentum"});
  refuses_config(R"({"save_every": ""})", 2, {"--save-every must be"});
  refuses_config(R"({"scope": "conv9"})", 2, {"--scope \"conv9\"", "did you mean \"conv1\"?"});
  for (const char* setting : {"model", "dataset", "augment", "optimizer", "schedule"})
    refuses_config(concat(R"({")", setting, R"(": ""})"), 2, {"\"\""});
  refuses_config("[]", 2, {"c.json", "object"});
  refuses_config("{\"steps\": ", 1, {"c.json"});
  refuses({"train", "--config", "nowhere.json"}, 1, {"nowhere.json"});
}

TEST_F(ArgumentsTest, DataThatCannotBeReadIsNamed) {
  write_tiny_digits(place_, "digits", 8, 4);
  place_.write("tiny.json", tiny_classifier());
  const auto refuses_data = [&](const std::vector<std::string>& parts) {
    refuses({"train", "--model", "tiny.json", "--dataset", "mnist", "--data-dir", "digits", "--threads", "1", "--out",
             "run"},
            1, parts);
    EXPECT_FALSE(fs::exists(place_.path() / "run" / "config.json"));
  };
  const std::string images = bytes_of(place_.path() / "digits/train-images-idx3-ubyte");
  place_.write("digits/train-images-idx3-ubyte", images.substr(0, images.size() - 1));
  refuses_data({"train-images-idx3-ubyte", "cut short"});
  place_.write("digits/train-images-idx3-ubyte", "");
  refuses_data({"train-images-idx3-ubyte"});
  place_.write("digits/train-images-idx3-ubyte", "\x1f\x8b nothing that inflates");
  refuses_data({"train-images-idx3-ubyte"});
  fs::remove(place_.path() / "digits/train-images-idx3-ubyte");
  refuses_data({"train-images-idx3-ubyte", "digits"});
  refuses({"train", "--dataset", "mnist"}, 1, {"mnist", "--data-dir"});
  refuses({"train", "--dataset", "cifar10", "--data-dir", "nowhere"}, 1, {"cifar10", "nowhere"});
  refuses({"train", "--dataset", "cifar10", "--data-dir", "digits"}, 1, {"cifar10", "digits", "data_batch_1.bin"});
}

TEST_F(ArgumentsTest, ModelFilesMustFitTheData) {
  write_tiny_digits(place_, "digits", 8, 4);
  const auto refuses_model = [&](const std::string& from, const std::string& to, const Arguments& more,
                                 const std::vector<std::string>& parts) {
    std::string text = tiny_classifier();
    const std::size_t place = text.find(from);
    ASSERT_NE(place, std::string::npos) << from;
    place_.write("model.json", text.replace(place, from.size(), to));
    Arguments line = {"train", "--model", "model.json", "--dataset", "mnist", "--data-dir", "digits", "--out", "run"};
    line.insert(line.end(), more.begin(), more.end());
    refuses(line, 1, parts);
  };
  refuses_model("8, 8, 1", "8, 8, 1", {"--batch-size", "2"}, {"model.json", "batches of 4", "--batch-size is 2"});
  refuses_model("8, 8, 1", "8, 9, 1", {}, {"model.json"});
  refuses_model("\"outputs\": [\"fc/BiasAdd\"]", "\"outputs\": []", {}, {"model.json", "outputs"});
  refuses_model("\"outputs\": [\"fc/BiasAdd\"]", "\"outputs\": [\"pool1\"]", {}, {"model.json", "pool1", "logits"});
  refuses({"train", "--model", "nowhere.json"}, 1, {"nowhere.json"});
  refuses({"train", "--model", "lenet5", "--dataset", "mnist", "--data-dir", "digits", "--batch-size", "4"}, 1,
          {"conv2/Conv2D"});
}

/// A short run, and what becomes of it with another checkpoint.
class CheckpointTest : public ArgumentsTest {
 protected:
  void SetUp() override {
    write_tiny_digits(place_, "digits", 16, 4);
    place_.write("tiny.json", tiny_classifier());
    expect_success(program({"train", "--model", "tiny.json", "--dataset", "mnist", "--data-dir", "digits", "--threads",
                            "1", "--steps", "4", "--stop-at", "2", "--out", "run"}));
    good_ = bytes_of(checkpoint());
  }

  fs::path checkpoint() const { return place_.path() / "run/checkpoint.safetensors"; }

  /// Neither eval nor train --resume takes the run's checkpoint as it is now; the file stays as it is.
  void both_refuse(const std::vector<std::string>& parts) const {
    const std::string bytes = bytes_of(checkpoint());
    std::vector<std::string> named = parts;
    named.push_back("run/checkpoint.safetensors");
    refuses({"eval", "--run", "run", "--threads", "1"}, 1, named);
    refuses({"train", "--resume", "--out", "run"}, 1, named);
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
  refuses({"eval", "--run", "run"}, 1, {"run/checkpoint.safetensors"});
  refuses({"train", "--resume", "--out", "run"}, 1, {"run/checkpoint.safetensors"});
}

TEST_F(CheckpointTest, OnesWithOtherVariablesAreRefused) {
  both_refuse_changed([](NamedTensors& all) { all.erase("fc/weights"); }, {"\"fc/weights\" is missing"});
  both_refuse_changed([](NamedTensors& all) { all.erase("conv1/act_quant/max"); }, {"conv1/act_quant/max"});
  both_refuse_changed([](NamedTensors& all) { all["fc2/weights"] = Tensor(Shape{2}); }, {"\"fc2/weights\""});
  both_refuse_changed([](NamedTensors& all) { all["fc/biases"] = Tensor(Shape{11}); }, {"fc/biases", "[11]", "[10]"});
  both_refuse_changed([](NamedTensors& all) { all["fc/biases"] = Tensor(Shape{10}, DType::kInt32); },
                      {"fc/biases", "int32", "float32"});
  both_refuse_changed(
      [](NamedTensors& all) { all.at("fc/weights").data<float>()[3] = std::numeric_limits<float>::quiet_NaN(); },
      {"fc/weights"});
  both_refuse_changed(
      [](NamedTensors& all) { all.at("conv1/biases").data<float>()[0] = std::numeric_limits<float>::infinity(); },
      {"conv1/biases"});
}

TEST_F(CheckpointTest, ResumingNeedsTheCounters) {
  const auto resume_refuses = [&](const std::string& name, const Tensor& value) {
    place_.write("run/checkpoint.safetensors", good_);
    Safetensors content = read_safetensors(checkpoint());
    content.tensors.erase(name);
    if (value.defined()) content.tensors[name] = value;
    write_safetensors(checkpoint(), content);
    refuses({"train", "--resume", "--out", "run"}, 1, {"run/checkpoint.safetensors", name});
  };
  resume_refuses("session:step", {});
  resume_refuses("session:step", Tensor::scalar(std::int64_t{-1}));
  resume_refuses("session:quantization_step", Tensor::scalar(1.0f));
}

TEST_F(CheckpointTest, AStartingPointMustHaveSomethingInCommon) {
  write_safetensors(place_.path() / "other.safetensors", {.tensors = {{"other", Tensor(Shape{2})}}, .metadata = {}});
  const auto refuses_start = [&](const std::string& file, const std::vector<std::string>& parts) {
    refuses({"train", "--model", "tiny.json", "--dataset", "mnist", "--data-dir", "digits", "--threads", "1", "--steps",
             "1", "--init-checkpoint", file, "--out", "new"},
            1, parts);
    EXPECT_FALSE(fs::exists(place_.path() / "new/config.json"));
  };
  refuses_start("other.safetensors", {"other.safetensors", "no tensor"});
  refuses_start("nowhere.safetensors", {"nowhere.safetensors"});
  refuses_start("digits", {"digits", "no run"});
  refuses_start("tiny.json", {"tiny.json"});
}

TEST_F(CheckpointTest, DamagedRunsAreNamed) {
  place_.write("run/eval_graph.json", "{");
  refuses({"eval", "--run", "run"}, 1, {"run/eval_graph.json"});
  place_.write("run/config.json", "{\"model\": 3}");
  refuses({"eval", "--run", "run"}, 2, {"run/config.json", "model"});
  refuses({"train", "--resume", "--out", "run"}, 2, {"run/config.json", "model"});
  fs::remove(place_.path() / "run/config.json");
  refuses({"eval", "--run", "run"}, 1, {"run holds no run", "config.json"});
  refuses({"eval", "--run", "nowhere"}, 1, {"nowhere"});
}

TEST_F(CheckpointTest, EvaluationNeedsFittingData) {
  refuses({"eval", "--run", "run", "--dataset", "synthetic"}, 1, {"[4,8,8,1]", "[28,28,1]"});
  refuses({"eval", "--run", "run", "--dataset", "imagenet"}, 2, {"imagenet", "synthetic"});
  refuses({"eval", "--run", "run", "--split", "dev"}, 2, {"--split", "dev"});
}

}  // namespace
}  // namespace miniqat::testing::arguments_test
