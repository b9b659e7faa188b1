// `miniqat verify` beside runtimes that hang, break or are interrupted (it goes on or ends, and leaves nothing behind),
// and beside exported C, compiled and run.

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "core/text/error.h"
#include "core/text/json.h"
#include "tests/cli/program.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::runtimes_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// A `node` of ours stands first in PATH, and temporary files have a directory of their own.
class RuntimesTest : public TinyTaskTest {
 protected:
  void SetUp() override {
    expect_success(train("run"));
    for (const char* file : {"runtimes/onnxruntime.mjs", "runtimes/litert.mjs"}) place_.write(file, "");
    fs::create_directory(path("runtimes/node_modules"));
  }

  /// Beside processes of its own.
  Outcome program(const Arguments& line) const { return started(line, place_.path()); }
  /// `script` is what node does when it is not just asked for its version.
  void write_node(const std::string& script) const {
    const fs::path file = place_.write("bin/node", "#!/bin/sh\n[ \"$1\" = --version ] && exit 0\n" + script);
    fs::permissions(file, fs::perms::owner_all);
  }
  /// A process with a child, which both hang; their ids are in the file "processes".
  void write_hanging_node() const {
    write_node(concat("sleep 1000 &\necho $$ $! >> ", path("processes").string(), "\nwait\n"));
  }
  static Arguments verify(const Arguments& more = {}) {
    return ("verify --run run --threads 1 --runtimes runtimes" + more);
  }

  /// How verify ends when the signal comes while a runtime runs.
  int status_after(int signal) const {
    Program running(verify(), place_.path());
    // The file is there before its line is.
    while (!fs::exists(path("processes")) || fs::is_empty(path("processes")))
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    running.send(signal);
    return running.wait().status;
  }

  void expect_nothing_left() const {
    EXPECT_TRUE(fs::is_empty(path("temporary")));
    std::ifstream processes(path("processes"));
    int count = 0;
    for (int id = 0; processes >> id; ++count) EXPECT_TRUE(ends(id)) << id;
    EXPECT_GT(count, 0);
  }

  const EnvironmentVariable path_{"PATH", concat(path("bin").string(), ":", std::getenv("PATH")).c_str()};
  const EnvironmentVariable temporary_{"TMPDIR", made("temporary").c_str()};

 private:
  fs::path made(const std::string& name) const {
    fs::create_directory(path(name));
    return path(name);
  }
  /// A process that nobody has waited for yet is still listed, as a zombie.
  static bool ends(int id) {
    for (int i = 0; i < 1000; ++i) {
      std::ifstream status(concat("/proc/", id, "/stat"));
      std::string number, name, state;
      if (!(status >> number >> name >> state) || state == "Z") return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }
};

TEST_F(RuntimesTest, OneThatHangsIsKilled) {
  write_hanging_node();
  const Json json = Json::parse(expect_success(program(verify({"--runtime-timeout", "1", "--json"}))).out);
  EXPECT_EQ(json["failed"], Json::array({"tflite failed: litert.mjs did not end within 1 s and was killed "
                                         "(--runtime-timeout gives it longer)",
                                         "onnx failed: onnxruntime.mjs did not end within 1 s and was killed "
                                         "(--runtime-timeout gives it longer)"}));
  EXPECT_EQ(json["simulated"]["examples"], 20);
  expect_nothing_left();
  EXPECT_EQ(program(verify({"--runtime-timeout", "1", "--min-runtime-agreement", "99"})).status, 1);
}

TEST_F(RuntimesTest, AnInterruptEndsThemToo) {
  for (const int signal : {SIGINT, SIGTERM}) {
    fs::remove(path("processes"));
    write_hanging_node();
    EXPECT_EQ(status_after(signal), 128 + signal);
    expect_nothing_left();
  }
}

TEST_F(RuntimesTest, Int4IsAnotherFile) {
  write_node("exit 3\n");
  const auto left_out = [&](const Arguments& more) {
    return Json::parse(program(verify({"--json"}) + more).out)["left_out"].dump();
  };
  EXPECT_EQ(left_out({}), "[]");
  expect_text(left_out({"--int4"}), {"no layer has weights of at most 4 bits"});
}

TEST_F(RuntimesTest, OneThatBreaksIsNamed) {
  write_node("echo first line >&2\necho second line >&2\nexit 3\n");
  expect_text(expect_success(program(verify({"--runtime-timeout", "0"}))).out,
              {"onnx failed: onnxruntime.mjs ended with status 3: first line\n"});
  EXPECT_TRUE(fs::is_empty(path("temporary")));
}

class VerifyCTest : public TinyTaskTest {
 protected:
  Outcome verify() const { return program("verify run --c --no-runtimes --threads 1 --json"); }
};

/// The same integers for every picture.
TEST_F(VerifyCTest, RunsExportedC) {
  if (std::system("command -v cc > /dev/null") != 0) GTEST_SKIP() << "no C compiler called cc";
  expect_success(train("run", "--weight-bits 4 --quantize-input"));
  const Json runtimes = Json::parse(expect_success(verify()).out)["runtimes"];
  ASSERT_EQ(runtimes.size(), 1u);
  EXPECT_EQ(runtimes[0]["name"].get<std::string>().find("C (cc "), 0u);
  EXPECT_EQ(runtimes[0]["examples"], 20);
  EXPECT_EQ(runtimes[0]["top1_agreement_with_integer"], 1);
  EXPECT_EQ(runtimes[0]["outputs"]["count"], 200);
  EXPECT_EQ(runtimes[0]["outputs"]["equal"], 200);
  EXPECT_EQ(Json::parse(bytes_of(path("run/verify.json")))["runtimes"], runtimes) << "for report";
  // It is bound as other runtimes are, also where it is the only one.
  expect_success(program(
      "verify run --c --no-runtimes --threads 1 --examples 4 --runtime-timeout 900 --min-runtime-agreement 100"));
  // A compiler that fails is a failed runtime, which only a bound makes a failure of the command.
  place_.write("bin/cc", "#!/bin/sh\n[ \"$1\" = -dumpversion ] && echo 1 && exit\necho no room >&2\nexit 3\n");
  std::filesystem::permissions(path("bin/cc"), std::filesystem::perms::owner_all);
  const std::string before = std::getenv("PATH");
  setenv("PATH", (path("bin").string() + ":" + before).c_str(), 1);
  const Json failed = Json::parse(verify().out);
  setenv("PATH", before.c_str(), 1);
  EXPECT_EQ(failed["runtimes"], Json::array());
  EXPECT_EQ(failed["failed"], Json({"c failed: cc ended with status 3: no room"}));
}

}  // namespace
}  // namespace miniqat::testing::runtimes_test
