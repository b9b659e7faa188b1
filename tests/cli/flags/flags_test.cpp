// What the parser says in plain words, the groups of settings, and settings that an error names by their flags.

#include <gtest/gtest.h>

#include <map>

#include "cli/flags/command_line.h"
#include "cli/flags/setting_flags.h"
#include "cli/notes.h"
#include "training/settings/settings.h"
#include "training/settings/train_settings.h"

namespace miniqat::cli::flags_test {
namespace {

TEST(ParseError, IsToldInPlainWords) {
  const std::pair<const char*, const char*> cases[] = {
      {"Could not convert: --steps = x", R"(--steps must be a number, got "x")"},
      {"Could not convert: --epochs = 1.5", R"(--epochs must be a whole number, got "1.5")"},
      {"Could not convert: --epochs = -1e400", R"(--epochs must be a whole number, got "-1e400")"},
      {"Could not convert: --steps = a = b", R"(--steps must be a number, got "a = b")"},
      {"--split: foo not in {test,train}", R"(--split must be test or train, got "foo")"},
      {"--format: onx not in {c,onnx,json}", R"(--format must be c, onnx or json, got "onx"; did you mean "onnx"?)"},
      {"--threads: Value 5000 not in range 0 to 1024", R"(--threads must be in 0..1024, got "5000")"},
      {"--elements: Value 1e6 not in range 1 to 268435456",
       R"(--elements must be a whole number in 1..268435456, got "1e6")"},
      {"--epochs: Value 2.5 not in range 1 to 9", R"(--epochs must be a whole number in 1..9, got "2.5")"},
      // As CLI11 says it since 2.4.
      {"--epochs: Value 2.5 not in range [1 - 9]", R"(--epochs must be a whole number in 1..9, got "2.5")"},
      {"--compare: At least 2 required but received 1", "--compare needs 2 values, got 1"},
      {"--run: At Most 1 required but received 2", "--run was given 2 times, once is the most"},
      {"graph: At Most 2 required but received 4", "graph was given 4 times, 2 times is the most"},
      {"--epochs: 1 required INT missing", "--epochs needs a value"},
      {"--run is required", "--run is required"},
      {"", ""},
  };
  for (const auto& [text, wanted] : cases) EXPECT_EQ(in_plain_words(text), wanted);
}

// One that is in no group would come last, among those of the run, and for everybody.
TEST(SettingGroups, EachSettingIsInOne) {
  std::map<std::string, int> times;
  for (const FlagGroup& group : groups_of_training()) {
    for (const std::string& name : group.first) ++times[name];
    for (const std::string& name : group.more) ++times[name];
  }
  training::TrainSettings::visit([&](const char* name, auto, const char*) {
    EXPECT_EQ(times[name], 1) << name;
    times.erase(name);
  });
  EXPECT_TRUE(times.empty()) << times.begin()->first << " is no setting";
}

TEST(WithFlags, SettingsBecomeFlags) {
  EXPECT_EQ(with_flags("`bn_fold` late needs `per_channel`: gamma"), "--bn-fold late needs --per-channel: gamma");
  EXPECT_EQ(with_flags("train with `weight_bits` of at most `8`"), "train with --weight-bits of at most `8`");
  EXPECT_EQ(with_flags("`strict`"), "--strict");
  EXPECT_EQ(with_flags("`batch_size` is 4"), "--batch-size is 4");
}

TEST(WithFlags, OtherTextsStay) {
  for (const char* text : {"", "`", "``", "per_channel", "run `npm ci` there", "`no_setting` and ` per_channel`",
                           "an open `per_channel", "`miniqat rewrite --report` says why"})
    EXPECT_EQ(with_flags(text), text);
  // A lone mark does not hide the setting behind it.
  EXPECT_EQ(with_flags("it's ` and `per_channel`"), "it's ` and --per-channel");
}

}  // namespace
}  // namespace miniqat::cli::flags_test
