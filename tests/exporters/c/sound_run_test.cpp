// A run on sounds as exported C: what its integers answer behind the float front end, C answers from the samples.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "core/text/error.h"
#include "core/text/json.h"
#include "tests/cli/program.h"
#include "tests/datasets/sound/recordings.h"
#include "tests/exporters/c/c_project.h"

namespace miniqat::exporters::sound_run_test {
namespace {

using testing::miniqat;
using testing::Outcome;

constexpr const char* kMain = R"c(#include <stdio.h>
#include "net.h"
int main(void) {
  static int16_t samples[NET_SAMPLES];
  static uint8_t output[NET_OUTPUT_SIZE];
  if (net_sound_self_test() != 0 || net_self_test() != 0) return 1;
  while (fread(samples, sizeof samples, 1, stdin) == 1) putchar('0' + net_run_sound(samples, output));
  return 0;
}
)c";

class SoundRun : public ::testing::Test {
 protected:
  std::string run(const std::string& line) const {
    const Outcome outcome = miniqat(line, place_.path());
    EXPECT_EQ(outcome.status, 0) << line << "\n" << outcome.err;
    return outcome.out;
  }
  testing::TempDir place_;
};

TEST_F(SoundRun, AnswersInCFromTheSamples) {
  std::string test_sounds;
  for (const testing::Recording& samples : testing::write_tones(place_, "tones"))
    test_sounds.append(reinterpret_cast<const char*>(samples.data()), samples.size() * sizeof samples[0]);
  for (const std::string features : {"mfcc", "log-mel --mel-scale slaney", "raw"}) {
    run(concat("train --dataset tones --features ", features,
               " --sample-rate 8000 --seconds 0.3 --model mlp --width 0.25 ",
               "--batch-size 10 --epochs 6 --threads 1 --weight-bits 8 --activation-bits 8 --overwrite --out run"));
    const std::string words = run("export run --name net --out net.c");
    EXPECT_NE(words.find("sound: net_run_sound takes 2400 samples of 16 bits, 8000 a second"), std::string::npos)
        << words;
    EXPECT_EQ(words.find("net_quantize"), std::string::npos) << words;
    place_.write("main.c", kMain);
    place_.write("in", test_sounds);
    const std::string command =
        concat("cd '", place_.path().string(), "' && cc ", testing::kStrict,
               " -O1 -fsanitize=address,undefined -o program main.c net.c && ./program < in > out");
    ASSERT_EQ(std::system(command.c_str()), 0);
    const std::string answers = testing::bytes_of(place_.path() / "out");
    ASSERT_EQ(answers.size(), 20u);
    const nlohmann::json predicted =
        nlohmann::json::parse(run("predict run 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 --integer --json"));
    std::string expected;
    for (const nlohmann::json& one : predicted.at("examples")) expected += one["class"] == "high" ? '0' : '1';
    EXPECT_EQ(answers, expected);
    EXPECT_GT(std::ranges::count(answers, '0'), 3) << "all the same tells nothing";
    EXPECT_GT(std::ranges::count(answers, '1'), 3);
  }
}

}  // namespace
}  // namespace miniqat::exporters::sound_run_test
