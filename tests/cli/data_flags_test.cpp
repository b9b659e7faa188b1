// Flags that only some data have: each is refused beside others, by its name, with the data for which it is.

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/text/error.h"
#include "core/text/json.h"
#include "tests/cli/program.h"
#include "tests/cli/run_files.h"
#include "tests/cli/tables.h"
#include "tests/datasets/dataset_files.h"
#include "tests/datasets/sound/wav.h"
#include "tests/errors.h"

namespace miniqat::testing::data_flags_test {
namespace {

/// A data set of each kind, as small as it can be.
class DataFlagsTest : public ProgramTest {
 protected:
  DataFlagsTest() {
    std::string table = "a,b,y\n", series = "@univariate true\n@classLabel true up down\n@data\n";
    for (int i = 0; i < 24; ++i) {
      table += concat(i * 7 % 5, ".5,", i % 3, ",", i, ".25\n");
      series += concat(i, ",", 2 * i % 7, ",3:", i % 2 == 0 ? "up" : "down", "\n");
    }
    place_.write("table.csv", table);
    place_.write("moves.ts", series);
    for (int i = 0; i < 12; ++i) {
      std::vector<std::int16_t> samples(800);
      for (std::size_t t = 0; t < samples.size(); ++t)
        samples[t] = static_cast<std::int16_t>(3000 * std::sin((0.1 + 0.2 * (i % 2)) * static_cast<double>(t)));
      place_.write(concat("words/", i % 2 == 0 ? "yes" : "no", "/", i, ".wav"), wav(samples, 8000));
      place_.write(concat("pets/", i % 2 == 0 ? "cat" : "dog", "/", i, ".png"), png_bytes(make_picture(8, 8, 1, i)));
    }
  }

  /// The first line of the error of `train`, which must not have begun.
  std::string refusal(const std::string& line) const {
    const Outcome outcome = program("train --model mlp --steps 1 --batch-size 2 --out x " + line);
    EXPECT_EQ(outcome.status, 2) << line << "\n" << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(path("x"))) << line;
    return outcome.err.substr(0, outcome.err.find('\n'));
  }
};

TEST_F(DataFlagsTest, BesideOtherDataAreRefused) {
  const char* of_sounds = "folders of sounds or drawn sounds";
  const std::pair<const char*, std::vector<std::string>> cases[] = {
      {"--dataset moves.ts --target a",
       {"--target has no effect with --dataset", "moves.ts, .ts files: it is for tables of numbers,"}},
      {"--dataset moves.ts --image-size 8", {"--image-size has no effect", "folders of pictures"}},
      {"--dataset moves.ts --group-by a", {"--group-by has no effect", "tables of numbers"}},
      {"--dataset moves.ts --features mfcc", {"--features has no effect", of_sounds}},
      {"--dataset table.csv --target y --pad-to 8", {"--pad-to has no effect", ".ts files or folders of recordings"}},
      {"--dataset table.csv --target y --colour grey", {"--colour has no effect", "pictures"}},
      {"--dataset table.csv --target y --skip-broken", {"--skip-broken has no effect", "folders of sounds"}},
      {"--dataset table.csv --target y --bands 20", {"--bands has no effect", "tables of numbers", of_sounds}},
      {"--dataset pets --features log-mel", {"--features has no effect", "pets, folders of pictures", of_sounds}},
      {"--dataset pets --no-standardise", {"--no-standardise has no effect", "arrays of numbers"}},
      {"--dataset pets --target y", {"--target has no effect", "folders of sounds"}},
      {"--dataset words --image-size 8", {"--image-size has no effect", "words, folders of sounds"}},
      {"--dataset words --answers targets", {"--answers has no effect", "arrays of numbers", ".ts files"}},
      {"--dataset words --snr-db 3", {"--snr-db has no effect", "it is for drawn sounds"}},
      {"--dataset synthetic --noise pets", {"--noise has no effect", "synthetic, pictures of a known data set"}},
      {"--dataset synthetic-sounds --target y", {"--target has no effect", "synthetic-sounds, drawn sounds"}}};
  for (const auto& [line, parts] : cases) EXPECT_TRUE(mentions(refusal(line), parts)) << line;
}

TEST_F(DataFlagsTest, OfOtherFeaturesAreRefused) {
  const std::pair<const char*, std::vector<std::string>> cases[] = {
      {"--features raw --bands 40", {"--bands has no effect with --features raw: it is for log-mel or mfcc"}},
      {"--features raw --mel-scale slaney",
       {"--mel-scale has no effect with --features raw: it is for log-mel or mfcc"}},
      {"--features raw --window-ms 20", {"--window-ms has no effect with --features raw"}},
      {"--features log-mel --coefficients 10",
       {"--coefficients has no effect with --features log-mel: it is for mfcc"}},
      {"--frames 2 --coefficients 10", {"--coefficients has no effect with --features log-mel"}}};
  for (const char* dataset : {"words", "synthetic-sounds"})
    for (const auto& [line, parts] : cases)
      EXPECT_TRUE(mentions(refusal(concat("--dataset ", dataset, " ", line)), parts)) << dataset << " " << line;
}

TEST_F(DataFlagsTest, OfAFloatRunAreRefused) {
  expect_success(
      program("train --float --model mlp --steps 2 --batch-size 4 --threads 1 --dataset moves.ts --out float"));
  for (const char* flag : {"--target a", "--inputs numbers", "--answers classes", "--bands 3", "--task regress",
                           "--no-standardise", "--snr-db 3"})
    for (const char* command : {"quantize", "calibrate", "sensitivity"})
      expect_error(program(concat(command, " --run float --out bits ", flag)), 2,
                   {"goes with --model: a float run has its own"});
  const Outcome noise = program("quantize --run float --epochs 1 --shift-ms 3 --out bits");
  expect_error(noise, 2, {"--shift-ms has no effect", ".ts files"});
}

/// A model file does not say what it was trained on.
TEST_F(DataFlagsTest, OfAModelInsteadOfARunAreTaken) {
  write_tables(place_);
  const std::string regress = " --dataset sums.csv --target sum --task regress ",
                    labels = " --dataset flags.csv --target right,up --task multilabel ";
  const auto summary = [&](const char* run) { return json_of(path(concat(run, "/summary.json"))); };
  for (const std::string& data : {regress, labels}) {
    const auto run = [&](const char* line) {
      const Outcome outcome = program(concat(line, data, "--overwrite --threads 1"));
      EXPECT_EQ(outcome.status, 0) << line << data << "\n" << outcome.err;
      return outcome.out;
    };
    run("train --float --model mlp --steps 40 --batch-size 4 --out float");
    expect_success(program("export float --format onnx-float --out net.onnx"));
    run("calibrate --model net.onnx --batch-size 4 --out bits");
    EXPECT_EQ(summary("bits")["task"], summary("float")["task"]);
    EXPECT_EQ(summary("bits")["target_names"], summary("float")["target_names"]);
    EXPECT_NEAR(summary("bits")["float_test_loss"], summary("float")["test_loss"], 1e-5);
    expect_text(run("sensitivity --model net.onnx --bits 4,8 --average-bits 6 --out widths"),
                {"to use them: miniqat quantize --model net.onnx", " --target ", " --task "});
  }
}

TEST_F(DataFlagsTest, OfAFileOfIntegersAreRefused) {
  expect_success(program("train --model mlp --steps 2 --batch-size 4 --threads 1 --dataset moves.ts --out bits"));
  expect_success(program("export bits --out net.miniqat"));
  expect_error(program("eval --model net.miniqat --dataset moves.ts --target a"), 2, {"--target has no effect"});
  expect_error(program("eval --model net.miniqat --dataset moves.ts --bands 20"), 2, {"--bands has no effect"});
}

/// A run would keep another name, and find its column no more.
TEST_F(DataFlagsTest, NamesThatARunCannotKeepAreRefused) {
  std::string table = "a,gr\xf6\xdf\x65,b\n";
  for (int i = 0; i < 24; ++i) table += concat(i * 7 % 5, ",", i, ".25,", i % 2, "\n");
  place_.write("latin1.csv", table);
  for (const char* flag : {"--target gr\xf6\xdf\x65", "--target b --group-by gr\xf6\xdf\x65"})
    EXPECT_TRUE(mentions(refusal(concat("--dataset latin1.csv ", flag)), {"is not UTF-8", "the number of a column"}))
        << flag;
  EXPECT_TRUE(mentions(refusal("--dataset latin1.csv --target b --group-by a --test-groups \xe4"), {"is not UTF-8"}));
  const char* by_number = "--dataset latin1.csv --target 1,2 --out run";
  EXPECT_EQ(program(concat("train --float --model mlp --steps 2 --batch-size 4 --threads 1 ", by_number)).status, 0);
  EXPECT_EQ(json_of(path("run/summary.json"))["target_names"], (nlohmann::json{"gr\\xf6\\xdfe", "b"}));
  EXPECT_EQ(nlohmann::json::parse(program("eval run --json").out)["targets"][0]["target"], "gr\\xf6\\xdfe");
}

/// What a run records of the front end is the usual one where there are no sounds.
TEST_F(DataFlagsTest, ARecordedConfigIsTakenAgain) {
  const std::string line = "train --float --model mlp --batch-size 4 --threads 1 ";
  expect_success(program(line + "--dataset moves.ts --steps 2 --out one"));
  expect_success(program(line + "--config one/config.json --steps 2 --out two"));
  expect_success(program("train --resume --out two --steps 3"));
}

/// Whole numbers in bytes look like pictures.
TEST_F(DataFlagsTest, ARunOfNumbersStaysOneOnBytes) {
  for (const auto& [part, size] : {std::pair("train", 60), {"test", 20}}) {
    std::string bytes, numbers, labels;
    for (int i = 0; i < size; ++i) {
      labels += static_cast<char>(i % 3);
      for (int k = 0; k < 4; ++k) {
        const auto number = static_cast<float>(i % 7 + k) + 0.5F;
        bytes += static_cast<char>(i % 7 + k);
        numbers.append(reinterpret_cast<const char*>(&number), sizeof number);
      }
    }
    const std::string count = concat(size, ","), shape = concat(size, ", 2, 2, 1");
    for (const char* folder : {"numbers", "bytes", "same"}) {
      const bool is_whole = folder != std::string("numbers");
      place_.write(concat(folder, "/x_", part, ".npy"),
                   is_whole ? npy_bytes("|u1", shape, bytes) : npy_bytes("<f4", shape, numbers));
      place_.write(concat(folder, "/y_", part, ".npy"), npy_bytes("|u1", count, labels));
    }
  }
  const auto run = [&](const std::string& line) {
    const Outcome outcome = program(line);
    EXPECT_EQ(outcome.status, 0) << line << "\n" << outcome.err;
    return outcome;
  };
  run("train --dataset numbers --no-standardise --float --model mlp --steps 5 --batch-size 10 --threads 1 --out float");
  run("calibrate float --dataset bytes --out ptq");
  const auto loss = [&](const std::string& more) {
    return nlohmann::json::parse(run("eval ptq --json " + more).out)["loss"];
  };
  EXPECT_EQ(loss(""), loss("--dataset same"));
  // Its file has no bytes to say anything of, either.
  run("export ptq --out net.miniqat");
  EXPECT_EQ(run("eval --model net.miniqat --dataset numbers").err.find("quantizes its input"), std::string::npos);
}

}  // namespace
}  // namespace miniqat::testing::data_flags_test
