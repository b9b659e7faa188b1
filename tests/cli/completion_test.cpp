// `miniqat completion`: the shells ask their scripts as they do when somebody presses the tabulator key.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "tests/cli/program.h"

namespace miniqat::testing::completion_test {
namespace {

using Words = std::set<std::string>;

class Completion : public ProgramTest {
 protected:
  void SetUp() override {
    for (const std::string name : {"bash", "zsh", "fish"}) {
      place_.write(name, expect_success(miniqat({"completion", name})).out);
    }
  }

  /// Runs a shell in the folder of the scripts; the words that it prints, one a line.
  Words shell(const std::string& text) const {
    place_.write("script", text);
    const std::string command = "cd '" + place_.path().string() + "' && bash script > out 2> err";
    EXPECT_EQ(std::system(command.c_str()), 0) << bytes_of(path("err"));
    EXPECT_EQ(bytes_of(path("err")), "");
    Words words;
    std::istringstream lines(bytes_of(path("out")));
    for (std::string line; std::getline(lines, line);) words.insert(line);
    return words;
  }

  /// The words offered for the last of `typed`, words as bash splits them.
  Words offered(const std::string& typed) const {
    return shell("set -u; . ./bash; COMP_WORDS=(" + typed +
                 "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); $(complete -p miniqat | sed 's/.*-F \\([^ ]*\\).*/\\1/')\n"
                 "for word in \"${COMPREPLY[@]}\"; do printf '%s\\n' \"$word\"; done");
  }

  /// The words that fish offers for the last one of a line.
  Words offered_by_fish(const std::string& line) const {
    place_.write("script.fish", "source ./fish; complete -C '" + line + "' | string replace -r '\\t.*' ''; true");
    return shell("HOME=$PWD fish --no-config script.fish");
  }

  /// Those of zsh, in a terminal of its own: the tabulator key asks compadd, which writes down what it is given.
  Words offered_by_zsh(const std::string& line) const {
    place_.write("keys", R"(autoload -Uz compinit; compinit -u -D
. ./zsh
compadd() {
  if [[ "$*" == *-[OAD]* ]]; then builtin compadd "$@"; return; fi
  local -a hits; builtin compadd -O hits "$@"; print -rl -- $hits >> hits
}
note() { zle -R; print > done; exit }
zle -N note; bindkey '^X' note; bindkey '^I' complete-word
setopt no_list_beep
print > ready
)");
    place_.write("terminal", R"(zmodload zsh/zpty
rm -f hits done ready; : > hits
zpty keyboard zsh -f -i
zpty -w keyboard ' . ./keys'
for i in {1..200}; do [[ -e ready ]] && break; sleep 0.05; done
zpty -w -n keyboard $'miniqat )" +
                                 line + R"(\t\x18'
for i in {1..200}; do [[ -e done ]] && break; zpty -r -t keyboard ignored; sleep 0.05; done
zpty -d keyboard
cat hits
)");
    return shell("HOME=$PWD TERM=dumb zsh -f terminal | sed '/^$/d'");
  }

  static bool has(const std::string& shell) {
    return std::system(("command -v " + shell + " > /dev/null").c_str()) == 0;
  }
};

const Words kModels = {"autoencoder",  "ds_cnn",       "lenet",    "lenet5",  "lenet_bn",          "mlp",
                       "mobilenet_v1", "mobilenet_v2", "resnet20", "resnet8", "visual_wake_words", "wake_word"};
const Words kDatasets = {"cifar10", "fashion-mnist", "mnist", "synthetic"};

/// Words among others: files that may stand there as well.
::testing::AssertionResult holds(const Words& offered, const Words& wanted) {
  for (const std::string& word : wanted)
    if (!offered.contains(word)) return ::testing::AssertionFailure() << "no " << word;
  return ::testing::AssertionSuccess();
}

TEST_F(Completion, OffersCommandsFlagsAndChoices) {
  EXPECT_EQ(offered("miniqat re"), (Words{"reestimate", "report", "rewrite"}));
  EXPECT_EQ(offered("miniqat --v"), Words{"--version"});
  EXPECT_EQ(offered("miniqat models --w"), Words{"--width"});
  EXPECT_EQ(offered("miniqat eval RUN --split t"), (Words{"test", "train"}));
  EXPECT_EQ(offered("miniqat eval --split ="), (Words{"test", "train", "validation"}));
  EXPECT_EQ(offered("miniqat eval --split = v"), Words{"validation"});
  EXPECT_EQ(offered("miniqat completion ''"), (Words{"bash", "fish", "zsh"}));
}

TEST_F(Completion, OffersNamesForValues) {
  EXPECT_TRUE(holds(offered("miniqat train --model ''"), kModels));
  EXPECT_EQ(offered("miniqat models --model ''"), kModels);
  EXPECT_EQ(offered("miniqat train --model mobile"), (Words{"mobilenet_v1", "mobilenet_v2"}));
  EXPECT_TRUE(holds(offered("miniqat train --dataset = ''"), kDatasets));
  EXPECT_EQ(offered("miniqat eval run --dataset mni"), Words{"mnist"});
  EXPECT_EQ(offered("miniqat train --optimizer ''"), (Words{"adam", "sgd"}));
  EXPECT_EQ(offered("miniqat train --schedule c"), (Words{"constant", "cosine"}));
  EXPECT_EQ(offered("miniqat bench --models resnet20,lenet5"), Words{"resnet20,lenet5"});
  EXPECT_EQ(offered("miniqat bench --models ''"), kModels);
  EXPECT_TRUE(holds(offered("miniqat bench --kernel ''"), {"forward", "backward"}));
  // A file of another kind.
  EXPECT_EQ(offered("miniqat eval run --model lenet"), Words{});
}

/// The names are those that the program takes.
TEST_F(Completion, OffersWhatTheProgramTakes) {
  const std::string kernels = miniqat("bench --kernel none").err;
  for (const std::string& name : offered("miniqat bench --kernel ''")) expect_text(kernels, {name});
  const std::string known = miniqat("train --dataset none").err + miniqat("train --optimizer none").err +
                            miniqat("train --schedule none").err + miniqat("train --augment none5").err +
                            miniqat("train --model none").err;
  for (const std::string flag : {"--dataset", "--optimizer", "--schedule", "--augment", "--model"})
    for (const std::string& name : offered("miniqat train " + flag + " ''"))
      if (!std::filesystem::exists(path(name))) {
        expect_text(known, {name});
      }
}

TEST_F(Completion, OffersCommandsBehindHelp) {
  EXPECT_EQ(offered("miniqat hel"), Words{"help"});
  EXPECT_EQ(offered("miniqat help re"), (Words{"reestimate", "report", "rewrite"}));
  EXPECT_EQ(offered("miniqat help train ''"), Words{});
}

TEST_F(Completion, FishOffersTheSame) {
  if (!has("fish")) GTEST_SKIP() << "fish is not installed";
  place_.write("model a.onnx", "");
  EXPECT_EQ(offered_by_fish("miniqat re"), (Words{"reestimate", "report", "rewrite"}));
  EXPECT_EQ(offered_by_fish("miniqat help re"), (Words{"reestimate", "report", "rewrite"}));
  EXPECT_EQ(offered_by_fish("miniqat hel"), Words{"help"});
  EXPECT_EQ(offered_by_fish("miniqat models --w"), Words{"--width"});
  EXPECT_EQ(offered_by_fish("miniqat eval RUN --split t"), (Words{"test", "train"}));
  EXPECT_EQ(offered_by_fish("miniqat eval RUN --split=v"), Words{"--split=validation"});
  EXPECT_EQ(offered_by_fish("miniqat models --model "), kModels);
  EXPECT_TRUE(holds(offered_by_fish("miniqat train --model "), kModels));
  EXPECT_TRUE(holds(offered_by_fish("miniqat train --dataset "), kDatasets));
  EXPECT_EQ(offered_by_fish("miniqat train --optimizer "), (Words{"adam", "sgd"}));
  EXPECT_EQ(offered_by_fish("miniqat bench --models resnet20,mobile"),
            (Words{"resnet20,mobilenet_v1", "resnet20,mobilenet_v2"}));
  EXPECT_EQ(offered_by_fish("miniqat import mo"), Words{"model a.onnx"});
  EXPECT_EQ(offered_by_fish("miniqat train --epochs "), Words{});
  EXPECT_EQ(offered_by_fish("miniqat completion "), (Words{"bash", "fish", "zsh"}));
}

TEST_F(Completion, ZshOffersTheSame) {
  if (!has("zsh")) GTEST_SKIP() << "zsh is not installed";
  EXPECT_EQ(offered_by_zsh("help re"), (Words{"reestimate", "report", "rewrite"}));
  EXPECT_EQ(offered_by_zsh("models --model "), kModels);
  EXPECT_EQ(offered_by_zsh("train --dataset mni"), Words{"mnist"});
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
  const std::regex flag("^  (?:-h,)?(--[a-z0-9-]+)");
  for (const std::string command : {"train", "verify", "bench"}) {
    Words shown;
    std::istringstream help(miniqat({command, "--help-all"}).out);
    std::smatch match;
    for (std::string line; std::getline(help, line);)
      if (std::regex_search(line, match, flag)) shown.insert(match[1]);
    EXPECT_GT(shown.size(), 8u);
    EXPECT_EQ(offered("miniqat " + command + " --"), shown);
  }
}

TEST_F(Completion, ZshReadsItsScript) {
  const std::string script = bytes_of(path("zsh"));
  EXPECT_TRUE(script.starts_with("#compdef miniqat\n"));
  expect_text(script, {":value:(test train validation)'", "'*:model:_files'"});
  if (!has("zsh")) GTEST_SKIP() << "zsh is not installed";
  EXPECT_EQ(shell("zsh -n zsh"), Words{});
}

}  // namespace
}  // namespace miniqat::testing::completion_test
