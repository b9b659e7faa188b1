// `miniqat completion`: bash asks its script as it does when somebody presses the tabulator key.

#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/program.h"

namespace miniqat::testing::completion_test {
namespace {

using Words = std::set<std::string>;

class Completion : public ::testing::Test {
 protected:
  void SetUp() override {
    const Outcome bash = miniqat({"completion", "bash"}), zsh = miniqat({"completion", "zsh"});
    expect_success(bash);
    expect_success(zsh);
    place_.write("bash", bash.out);
    place_.write("zsh", zsh.out);
  }

  /// Runs a shell in the folder of the scripts; the words that it prints, one a line.
  Words shell(const std::string& text) const {
    place_.write("script", text);
    const std::string command = "cd '" + place_.path().string() + "' && bash script > out 2> err";
    EXPECT_EQ(std::system(command.c_str()), 0) << bytes_of(place_.path() / "err");
    EXPECT_EQ(bytes_of(place_.path() / "err"), "");
    Words words;
    std::istringstream lines(bytes_of(place_.path() / "out"));
    for (std::string line; std::getline(lines, line);) words.insert(line);
    return words;
  }

  /// The words offered for the last of `typed`, words as bash splits them.
  Words offered(const std::string& typed) const {
    return shell("set -u; . ./bash; COMP_WORDS=(" + typed +
                 "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); $(complete -p miniqat | sed 's/.*-F \\([^ ]*\\).*/\\1/')\n"
                 "for word in \"${COMPREPLY[@]}\"; do printf '%s\\n' \"$word\"; done");
  }

  TempDir place_;
};

TEST_F(Completion, OffersCommandsFlagsAndChoices) {
  EXPECT_EQ(offered("miniqat re"), (Words{"reestimate", "report", "rewrite"}));
  EXPECT_EQ(offered("miniqat --v"), Words{"--version"});
  EXPECT_EQ(offered("miniqat models --w"), Words{"--width"});
  EXPECT_EQ(offered("miniqat eval RUN --split t"), (Words{"test", "train"}));
  EXPECT_EQ(offered("miniqat eval --split ="), (Words{"test", "train", "validation"}));
  EXPECT_EQ(offered("miniqat eval --split = v"), Words{"validation"});
  EXPECT_EQ(offered("miniqat completion ''"), (Words{"bash", "zsh"}));
}

TEST_F(Completion, OffersFilesForTextAndNothingForNumbers) {
  place_.write("model a.onnx", "");
  EXPECT_EQ(offered("miniqat import mo"), Words{"model a.onnx"});
  EXPECT_EQ(offered("miniqat train --data-dir mo"), Words{"model a.onnx"});
  EXPECT_EQ(offered("miniqat eval RUN --integer mo"), Words{"model a.onnx"});
  EXPECT_EQ(offered("miniqat train --epochs ''"), Words{});
  EXPECT_EQ(offered("miniqat bench --bits ''"), Words{});
  EXPECT_EQ(offered("miniqat nothing ''"), Words{});
}

TEST_F(Completion, OffersEveryFlagOfTheHelp) {
  const std::regex flag("^ +(?:-h,)?(--[a-z0-9-]+)");
  for (const std::string command : {"train", "verify", "bench"}) {
    Words shown;
    std::istringstream help(miniqat({command, "--help"}).out);
    std::smatch match;
    for (std::string line; std::getline(help, line);)
      if (std::regex_search(line, match, flag)) shown.insert(match[1]);
    EXPECT_GT(shown.size(), 8u);
    EXPECT_EQ(offered("miniqat " + command + " --"), shown);
  }
}

TEST_F(Completion, ZshReadsItsScript) {
  const std::string script = bytes_of(place_.path() / "zsh");
  EXPECT_TRUE(script.starts_with("#compdef miniqat\n"));
  EXPECT_NE(script.find(":value:(test train validation)'"), std::string::npos);
  EXPECT_NE(script.find("'*:model:_files'"), std::string::npos);
  if (std::system("command -v zsh > /dev/null") != 0) GTEST_SKIP() << "zsh is not installed";
  EXPECT_EQ(shell("zsh -n zsh"), Words{});
}

TEST(CompletionArguments, AShellIsNeeded) {
  expect_error(miniqat({"completion"}), 2, {"SHELL"});
  expect_error(miniqat({"completion", "fish"}), 2, {"fish"});
}

}  // namespace
}  // namespace miniqat::testing::completion_test
