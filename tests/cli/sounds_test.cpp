// Sounds by the program: recordings of machines and words, from files to integers.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string>
#include <tuple>
#include <utility>

#include "core/text/error.h"
#include "core/text/json.h"
#include "tests/cli/program.h"
#include "tests/cli/run_files.h"
#include "tests/datasets/dataset_files.h"
#include "tests/datasets/sound/recordings.h"

namespace miniqat::testing::sounds_program_test {
namespace {

namespace fs = std::filesystem;

class MachineTest : public ProgramTest {
 protected:
  MachineTest() {
    place_.write("sums.csv", "a,b,sum\n1.5,2,3.5\n2.5,1,3.5\n1,1.5,2.5\n2,2,4.5\n");
    write_machine(place_, "pump");
  }

  /// Returns what the program prints; a failure is one of the test.
  std::string run(const std::string& line) const {
    const Outcome outcome = program(line);
    EXPECT_EQ(outcome.status, 0) << line << "\n" << outcome.err;
    return outcome.out;
  }
  std::string refused(const std::string& line) const {
    const Outcome outcome = program(line);
    EXPECT_NE(outcome.status, 0) << line;
    return outcome.err;
  }
};

constexpr const char* kPump =
    "train --dataset pump --frames 2 --sample-rate 8000 --window-ms 8 --stride-ms 4 --bands 4 --model autoencoder --width 0.25 "
    "--batch-size 20 --threads 1 ";

TEST_F(MachineTest, RecordingsAreScoredByTheirWindows) {
  const std::string trained = run(concat(kPump, "--float --epochs 20 --validation 40 --out float"));
  EXPECT_NE(trained.find("task reconstruct: from [2,4] to 8 numbers, measured by AUC"), std::string::npos) << trained;
  EXPECT_NE(trained.find("(8 recordings)"), std::string::npos) << trained;
  EXPECT_EQ(trained.find("has the label"), std::string::npos) << "that no anomaly is trained with is as it should be";
  EXPECT_GT(json_of(place_.path() / "float/summary.json")["test_auc"].get<double>(), 0.9);
  const nlohmann::json config = json_of(place_.path() / "float/config.json");
  EXPECT_EQ(std::tuple(config["features"], config["frames"], config["seconds"], config["high_hz"]),
            std::tuple("log-mel", 2, 0.0, 4000.0));
  // 23 windows each.
  EXPECT_EQ(json_of(place_.path() / "float/summary.json")["pictures"],
            nlohmann::json({{"training", 230}, {"validation", 46}, {"test", 184}}));
  const std::string table = run("quantize --run float --weight-bits 8 --activation-bits 8 --epochs 1 --out bits");
  EXPECT_NE(table.find("validation MSE  test AUC"), std::string::npos) << "a normal part has no AUC: " << table;
  EXPECT_NE(run("eval bits --integer").find("(8 recordings)"), std::string::npos);
  EXPECT_NE(run("calibrate float --out calibrated").find("(8 recordings)"), std::string::npos);
  run("sensitivity --run float --bits 4 --out sensitivity");
  EXPECT_TRUE(json_of(place_.path() / "sensitivity/sensitivity.json")["float"].contains("mse"));
}

TEST_F(MachineTest, WithoutAnomaliesErrorsAreMeasured) {
  for (int i = 0; i < 4; ++i) fs::remove(place_.path() / concat("pump/test/anomaly_id_0_", i, ".wav"));
  const std::string normal = run(concat(kPump, "--float --steps 1 --out normal"));
  EXPECT_NE(normal.find("measured by mean squared error"), std::string::npos) << normal;
  EXPECT_EQ(normal.find("note:"), std::string::npos) << normal;
  place_.write("pump/train/anomaly_id_0_9.wav", wav(machine_hum(9, 6000), 8000));
  const std::string mixed = run(concat(kPump, "--float --steps 1 --task reconstruct --out mixed"));
  EXPECT_NE(mixed.find("note: 23 of 299 training examples are anomalies, of other classes than normal"),
            std::string::npos)
      << mixed;
}

/// As the same recordings by their numbers.
TEST_F(MachineTest, PredictTakesSoundFiles) {
  run(concat(kPump, "--steps 40 --out bits"));
  const auto asked = [&](const std::string& words) {
    return nlohmann::json::parse(run("predict bits --json " + words))["examples"];
  };
  std::string numbers;
  for (int i = 0; i < 8 * 23; ++i) numbers += concat(" ", i);
  const nlohmann::json windows = asked(numbers), files = asked("pump/test");
  ASSERT_EQ(files.size(), 8u);
  for (std::size_t k = 0; k < files.size(); ++k) {
    double error = 0;
    for (std::size_t i = 0; i < 23; ++i) error += windows[23 * k + i]["error"].get<double>() / 23;
    EXPECT_NEAR(files[k]["error"].get<double>(), error, 1e-6 * error);
    EXPECT_EQ(files[k]["windows"], 23);
    EXPECT_EQ(files[k]["example"], concat("pump/test/", windows[23 * k]["file"].get<std::string>().substr(5)));
  }
  EXPECT_EQ(asked("pump/test/normal_id_0_2.wav --integer").size(), 1u);
  expect_text(run("predict bits pump/test/normal_id_0_2.wav"), {"pump/test/normal_id_0_2.wav", "error"});
  place_.write("short.wav", tone(5, 20));
  expect_text(refused("predict bits short.wav"), {"short.wav", "the recording is shorter than an example"});
  expect_text(refused("predict bits sums.csv"), {"sums.csv", "is no sound that can be read"});
  fs::create_directory(place_.path() / "empty");
  expect_text(refused("predict bits empty"), {"empty", "is a folder without sounds"});
  expect_text(refused("predict bits none.wav"), {"none.wav", "neither the number of an example"});
  run("export bits --out net.miniqat");
  expect_text(refused("predict net.miniqat short.wav"),
              {"net.miniqat is a file, not the directory of a run", "eval --model"});
}

TEST_F(MachineTest, PredictNamesTheClassOfASoundFile) {
  for (int i = 0; i < 36; ++i)
    place_.write(concat("words/", i % 2 == 0 ? "yes" : "no", "/", i, ".wav"),
                 wav(machine_hum(i, i % 2 == 0 ? 9000 : 0), 8000));
  run("train --dataset words --sample-rate 8000 --seconds 0.1 --model mlp --width 0.25 --epochs 20 --batch-size 10 --threads 1 --out bits");
  const nlohmann::json by_number = nlohmann::json::parse(run("predict bits 0 1 2 3 4 5 --json"))["examples"];
  std::string files;
  for (const nlohmann::json& one : by_number) files += concat(" words/", one["file"].get<std::string>());
  const nlohmann::json by_file = nlohmann::json::parse(run("predict bits --json" + files))["examples"];
  ASSERT_EQ(by_file.size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(by_file[i]["scores"], by_number[i]["scores"]);
    EXPECT_EQ(by_file[i]["class"], by_number[i]["class"]);
    EXPECT_TRUE(by_file[i]["label"].is_null());
    EXPECT_FALSE(by_file[i].contains("windows"));
  }
  expect_text(run("predict bits words/yes/0.wav"), {"example", "class", "words/yes/0.wav", "%"});
}

TEST_F(MachineTest, SilenceIsAClassOfItsOwn) {
  std::string tests;
  for (int i = 0; i < 36; ++i) {
    const std::string file = concat(i % 3 == 0 ? "yes" : i % 3 == 1 ? "no" : "up", "/", i, ".wav");
    place_.write("words/" + file, wav(machine_hum(i, 3000 * (i % 3)), 8000));
    if (i % 12 < 3) tests += file + "\n";
  }
  place_.write("words/testing_list.txt", tests);
  Recording noise;
  for (int i = 0; i < 10; ++i) std::ranges::copy(noisy_tone(i, true), std::back_inserter(noise));
  place_.write("words/_background_noise_/tones.wav", wav(noise, 8000));
  const std::string trained = run(
      "train --dataset words --target ^(yes|no|_silence_)/|$ --silence 12 --sample-rate 8000 --seconds 0.1 --mel-scale slaney --model mlp --width 0.25 --steps 20 --batch-size 10 --threads 1 --out bits");
  EXPECT_NE(trained.find("39 training"), std::string::npos) << trained;
  const nlohmann::json summary = json_of(place_.path() / "bits/summary.json");
  EXPECT_EQ(summary["class_names"], nlohmann::json({"_silence_", "no", "other", "yes"}));
  EXPECT_EQ(summary["pictures"], nlohmann::json({{"training", 39}, {"validation", 0}, {"test", 13}}));
  const nlohmann::json config = json_of(place_.path() / "bits/config.json");
  EXPECT_EQ(std::tuple(config["silence"], config["mel_scale"]), std::tuple(12, "slaney"));
  expect_text(run("eval bits --by-class --integer"), {"_silence_", "other"});
  for (const char* folder : {"_silence_", "_unknown_", "yes"})
    place_.write(concat("tests/", folder, "/0.wav"), wav(machine_hum(5, 0), 8000));
  EXPECT_EQ(nlohmann::json::parse(run("eval bits --dataset tests --json"))["examples"], 3);
}

TEST_F(MachineTest, TheFirstExamplesAreWholeRecordings) {
  run(concat(kPump, "--steps 4 --out bits"));
  // 23 windows each.
  for (const auto& [asked, taken] : {std::pair(30, 46), {46, 46}, {1, 23}}) {
    const Outcome outcome = miniqat(concat("eval bits --json --examples ", asked), place_.path());
    EXPECT_EQ(nlohmann::json::parse(outcome.out)["examples"], taken);
    EXPECT_EQ(outcome.err.find(concat("of its recording: ", taken, " are taken")) != std::string::npos, asked < taken)
        << outcome.err;
  }
  EXPECT_EQ(nlohmann::json::parse(run("verify bits --no-runtimes --json --examples 30"))["examples"], 46);
}

/// Classes are compared only of data that fit.
TEST_F(MachineTest, OtherShapesAreSaidBeforeOtherClasses) {
  for (int i = 0; i < 12; ++i)
    place_.write(concat("words/", i % 2 == 0 ? "yes" : "no", "/", i, ".wav"), wav(machine_hum(i, 0), 8000));
  place_.write("pets/cat/1.png", png_bytes(make_picture(8, 8, 1)));
  run("train --dataset words --sample-rate 8000 --seconds 0.1 --model mlp --width 0.25 --steps 1 --batch-size 4 --threads 1 --out bits");
  run("export bits --out net.miniqat");
  place_.write("series.csv", "a,label\n1.5,up\n2.5,down\n3.5,up\n");
  for (const std::string line : {"eval bits --dataset ", "eval --model net.miniqat --dataset "}) {
    expect_text(refused(line + "pets"), {"4,10]", "folders of pictures"});
    const std::string error = refused(line + "series.csv");
    expect_text(error, {"4,10]", "[1]"});
    EXPECT_EQ(error.find("class"), std::string::npos) << error;
  }
}

TEST_F(MachineTest, VariedSoundsAreResumedToTheBit) {
  fs::create_directory(place_.path() / "hall");
  fs::copy(place_.path() / "pump/test/normal_id_0_1.wav", place_.path() / "hall/air.wav");
  const std::string varied =
      concat(kPump, "--float --steps 24 --shift-ms 3 --gain-db 2 --noise hall --noise-db 5 --out ");
  EXPECT_NE(run(varied + "whole").find("276 training (varied)"), std::string::npos);
  run(varied + "halves --stop-at 17");
  run("train --resume --out halves");
  const auto checkpoint = [&](const std::string& name) {
    return bytes_of(place_.path() / name / "checkpoint.safetensors");
  };
  EXPECT_EQ(checkpoint("whole"), checkpoint("halves"));
  run(concat(kPump, "--float --steps 24 --out plain"));
  EXPECT_NE(checkpoint("whole"), checkpoint("plain"));
  run("eval whole");
}

TEST_F(MachineTest, FlagsOfSoundsWithoutEffectAreRefused) {
  const std::string own = " --dataset sums.csv --target sum --model mlp --steps 1 --batch-size 10 --out x";
  const std::pair<std::string, const char*> cases[] = {
      {concat("train --shift-ms 3", own), "--shift-ms has no effect"},
      {concat("train --frames 5", own), "--frames has no effect"},
      {concat("train --noise-db 3", own), "--noise-db goes with --noise"},
      {concat("train --snr-db 3", own), "--snr-db has no effect"},
      {concat(kPump, "--features raw --out x"), "--frames must be 0 for raw samples"},
      {concat(kPump, "--noise nowhere --out x"), "nowhere"},
      {concat(kPump, "--silence 5 --out x"), "--silence must be 0 where examples are windows (--frames)"},
      {"train --dataset pump --silence 5 --validation 5 --model mlp --out x", "--silence goes without --validation"},
      {"train --dataset pump --silence 5 --group-by (a) --model mlp --out x", "--silence goes without --group-by"},
      {"train --dataset synthetic-sounds --silence 5 --model mlp --out x", "--silence has no effect"},
      {concat(kPump, "--low-hz 5000 --out x"), "--low-hz must be from 0 on and below --high-hz"},
      {concat(kPump, "--high-hz 5000 --out x"), "--high-hz must be at most half of --sample-rate"},
      {concat(kPump, "--frames 500 --out x"), "the recording is shorter than an example, 500 steps"},
      {concat(kPump, "--target \\d --out x"),
       "captures nothing: the class is what stands in brackets, as in '^(\\d)_'"},
      {concat(kPump, "--seconds 0.01 --out x"), "--frames must be as many as fit"}};
  for (const auto& [line, words] : cases) expect_text(refused(line), {words});
}

}  // namespace
}  // namespace miniqat::testing::sounds_program_test
