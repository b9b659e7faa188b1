#include <gtest/gtest.h>

#include <filesystem>

#include "core/text/error.h"
#include "core/text/json.h"
#include "tests/cli/run_files.h"
#include "tests/temp_dir.h"
#include "training/run/made_by.h"

namespace miniqat::training::command_record_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// In a working directory of its own.
class CommandRecord : public ::testing::Test {
 protected:
  CommandRecord() { fs::current_path(place_.path()); }
  ~CommandRecord() override { fs::current_path(before_); }

  /// The last of the run's records once it has one more.
  static nlohmann::json recorded(const RunDirectory& run) {
    record_command(run);
    return testing::json_of(run.commands()).back();
  }

  const fs::path before_ = fs::current_path();
  testing::TempDir place_;
};

TEST_F(CommandRecord, HasTheWordsAsTheyWereTyped) {
  const fs::path out = place_.path() / "run";
  const RunDirectory run = RunDirectory::fresh(out, "none");
  EXPECT_EQ(recorded(run), nlohmann::json::object({{"command", nullptr}})) << "Python has no command line";
  set_command_line({"train", "--out", out, "--model", "lenet $(5)", "--steps=3"});
  const std::string text = concat("miniqat train --out ", out.string(), " --model 'lenet $(5)' --steps=3");
  EXPECT_EQ(recorded(run), nlohmann::json::object({{"command", text}})) << "no relative path, no directory";
  EXPECT_EQ(testing::json_of(run.commands()).size(), 2u);
}

TEST_F(CommandRecord, HasTheDirectoryOfRelativePaths) {
  place_.write("net.json", "");
  const RunDirectory run = RunDirectory::fresh(place_.path() / "run", "none");
  const std::string here = fs::current_path();
  for (const char* path : {"--model=net.json", "./run"}) {
    set_command_line({"train", path});
    EXPECT_EQ(recorded(run)["directory"], here) << path;
  }
  set_command_line({"train"});
  EXPECT_FALSE(recorded(run).contains("directory"));
  EXPECT_EQ(recorded(RunDirectory::fresh("other", "none"))["directory"], here) << "the default of --out is relative";
}

TEST_F(CommandRecord, ADamagedListGivesWayToANewOne) {
  place_.write("commands.json", "[{\"command\": 5}]");
  set_command_line({"train"});
  record_command(RunDirectory::fresh(".", "none", RunDirectory::Existing::kOverwrite));
  EXPECT_EQ(testing::json_of("commands.json").size(), 1u);
}

TEST_F(CommandRecord, IsALineForAShell) {
  EXPECT_EQ(text_of_commands(Json::array()), "");
  const Json train = {{"command", "miniqat train --out a"}}, on = {{"command", "miniqat train --resume --out a"}};
  EXPECT_EQ(text_of_commands(Json::array({train, on, on, on})),
            "miniqat train --out a && miniqat train --resume --out a");
  EXPECT_EQ(text_of_commands(Json::array({Json{{"command", nullptr}}, on})),
            "(from Python or another program) && miniqat train --resume --out a");
}

}  // namespace
}  // namespace miniqat::training::command_record_test
