#include <gtest/gtest.h>

#include "cli/notes.h"

namespace miniqat::cli::with_flags_test {
namespace {

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
}  // namespace miniqat::cli::with_flags_test
