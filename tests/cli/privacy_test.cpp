// `miniqat verify` starts programs of other makers: they look up no host and leave no file. tests/preload/look_ups.cpp
// hears them, in a network namespace from which nothing gets out.

#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>

#include "core/text/error.h"
#include "tests/cli/tiny_task.h"
#include "tests/runtimes/judge.h"
#include "tests/source_dir.h"

namespace miniqat::testing::privacy_test {
namespace {

namespace fs = std::filesystem;

class PrivacyTest : public TinyTaskTest {
 protected:
  Outcome program(const Arguments& line) const { return started(line, place_.path()); }
  Outcome train(const std::string& out) const { return program(train_command(out)); }
  void SetUp() override {
    const Outcome namespaces = Program(Program::Line{{"/usr/bin/env", "unshare", "-rn", "true"}}, place_.path()).wait();
    if (namespaces.status != 0) GTEST_SKIP() << "no network namespaces here";
    if (const std::string why = testing::why_no_runtimes(); !why.empty()) GTEST_SKIP() << why;
    for (const char* name : {"home", "cache", "temporary"}) fs::create_directory(path(name));
  }

  /// The outcome of a program that is listened to, without a word against telemetry in its environment.
  Outcome listened(const Arguments& words) const {
    Arguments line = "/usr/bin/env unshare -rn env -u ORT_DISABLE_TELEMETRY";
    for (const auto& [variable, value] : {std::pair("HOME", path("home").string()),
                                          {"XDG_CACHE_HOME", path("cache")},
                                          {"TMPDIR", path("temporary")},
                                          {"MINIQAT_LOOK_UPS", path("look-ups")},
                                          {"LD_PRELOAD", MINIQAT_LOOK_UPS}})
      line.push_back(concat(variable, "=", value));
    line.insert(line.end(), words.begin(), words.end());
    return Program(Program::Line{line}, place_.path()).wait();
  }
  void expect_private() const {
    EXPECT_FALSE(fs::exists(path("look-ups"))) << bytes_of(path("look-ups"));
    for (const char* name : {"home", "cache", "temporary"})
      for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path(name)))
        ADD_FAILURE() << entry.path() << " was left";
  }
};

TEST_F(PrivacyTest, VerifyLooksNothingUpAndLeavesNoFile) {
  expect_success(train("run"));
  expect_text(expect_success(listened({program_path(), "verify", "--run", "run", "--threads", "1", "--c"})).out,
              {"LiteRT", "onnxruntime", "C ("});
  expect_private();
}

// As tests and scripts start it.
TEST_F(PrivacyTest, SoDoesTheScriptAlone) {
  expect_success(train("run"));
  expect_success(program("export --run run --format onnx --out model.onnx"));
  place_.write("images", std::string(8 * 8, '\5'));
  const Outcome outcome =
      listened({"node", (source_dir() / "runtimes/onnxruntime.mjs").string(), "model.onnx", "images", "1", "outputs"});
  expect_success(outcome);
  EXPECT_EQ(fs::file_size(path("outputs")) % 10, 0u);
  expect_private();
}

TEST_F(PrivacyTest, ALookUpWouldBeHeard) {
  listened({"node", "--eval", "require('dns').lookup('telemetry.invalid', () => {})"});
  expect_text(bytes_of(path("look-ups")), {"getaddrinfo telemetry.invalid\n"});
}

/// A script in Python, JavaScript or the shell that imports or installs the runtime.
bool loads_onnx_runtime(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.find("onnxruntime") != line.npos &&
        (line.find("import") != line.npos || line.find("install ") != line.npos))
      return true;
  return false;
}

/// Not for one child alone: another would be forgotten.
bool switches_telemetry_off_for_all(std::string_view text) {
  for (const char* line : {"process.env.ORT_DISABLE_TELEMETRY = '1'", "os.environ[\"ORT_DISABLE_TELEMETRY\"] = \"1\"",
                           "export ORT_DISABLE_TELEMETRY=1"})
    if (text.find(line) != text.npos) return true;
  return false;
}

TEST(Privacy, WhateverLoadsOnnxRuntimeSwitchesItsTelemetryOff) {
  int count = 0;
  const fs::path source = source_dir();
  for (const char* folder :
       {"benchmarks", "docs", "examples", "experiments", "labs", "python", "runtimes", "scripts", "tests"})
    for (auto entry = fs::recursive_directory_iterator(source / folder); entry != fs::end(entry); ++entry) {
      if (entry->path().filename() == "node_modules") entry.disable_recursion_pending();
      const std::string ending = entry->path().extension();
      if (!entry->is_regular_file() || ending == ".cpp" || ending == ".png") continue;
      const std::string text = bytes_of(entry->path());
      if (!loads_onnx_runtime(text)) continue;
      ++count;
      EXPECT_TRUE(switches_telemetry_off_for_all(text)) << entry->path();
    }
  EXPECT_GE(count, 4);
}

}  // namespace
}  // namespace miniqat::testing::privacy_test
