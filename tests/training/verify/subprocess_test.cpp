#include "training/verify/subprocess.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <thread>

#include "core/text/error.h"

namespace miniqat::training::subprocess_test {
namespace {

using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

Finished shell(const std::string& script, seconds limit) { return run_program({"sh", "-c", script}, limit); }

TEST(Subprocess, ReportsHowAProgramEndedAndWhatItPrinted) {
  const Finished finished = shell("echo out; echo err >&2; exit 3", seconds(60));
  EXPECT_EQ(finished.status, 3);
  EXPECT_EQ(finished.out, "out\n");
  EXPECT_EQ(finished.err, "err\n");
  EXPECT_FALSE(finished.timed_out);
  EXPECT_EQ(shell("kill -TERM $$", seconds(60)).status, 128 + SIGTERM);
  EXPECT_EQ(run_program({"no-such-program-anywhere"}, seconds(60)).status, 127);
}

TEST(Subprocess, AProgramIsToldToSendNothingHome) {
  EXPECT_EQ(shell("echo $ORT_DISABLE_TELEMETRY; echo ${PATH:+path}", seconds(60)).out, "1\npath\n");
  // Whatever the caller's environment says.
  ::setenv("ORT_DISABLE_TELEMETRY", "0", 1);
  EXPECT_EQ(shell("env | grep ORT_", seconds(60)).out, "ORT_DISABLE_TELEMETRY=1\n");
  ::unsetenv("ORT_DISABLE_TELEMETRY");
}

TEST(Subprocess, AProgramThatClosesItsPipesAndLivesOnIsKilled) {
  const Clock::time_point started = Clock::now();
  const Finished finished = shell("echo out; exec >&- 2>&-; exec sleep 100", seconds(1));
  EXPECT_TRUE(finished.timed_out);
  EXPECT_EQ(finished.out, "out\n");
  EXPECT_LT(Clock::now() - started, seconds(50));
}

TEST(Subprocess, AProgramThatClosesItsPipesMayEndLater) {
  const Finished finished = shell("echo out; exec >&- 2>&-; sleep 0.2; exit 4", seconds(60));
  EXPECT_EQ(finished.status, 4);
  EXPECT_FALSE(finished.timed_out);
}

struct Stopped {};

/// Throws when it is asked for the third time.
void expect_stopped(const std::string& script) {
  int asked = 0;
  const auto check = [&] {
    if (++asked == 3) throw Stopped();
  };
  EXPECT_THROW(run_program({"sh", "-c", script}, seconds(0), check), Stopped);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

TEST(Subprocess, TheCallerEndsTheWaitForAProgram) { expect_stopped("exec sleep 100"); }

TEST(Subprocess, TheCallerEndsTheWaitForAProgramWithoutPipes) { expect_stopped("exec >&- 2>&-; exec sleep 100"); }

/// No file may be open beyond the first while one lives: a poll() of two fails.
class NoFiles {
 public:
  NoFiles() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none = {.rlim_cur = 1, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoFiles() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoFiles(const NoFiles&) = delete;

 private:
  rlimit before_{};
};

TEST(Subprocess, AFailureLeavesNoProcessBehind) {
  std::thread later([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    const NoFiles limited;
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  });
  EXPECT_THROW(shell("exec sleep 100", seconds(60)), Error);
  later.join();
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

TEST(Subprocess, OutputWithoutEndIsReadButNotKept) {
  const Finished finished = shell("head -c 40000000 /dev/zero", seconds(60));
  EXPECT_EQ(finished.status, 0);
  EXPECT_GE(finished.out.size(), 1u << 24);
  EXPECT_LT(finished.out.size(), 20u << 20);
}

}  // namespace
}  // namespace miniqat::training::subprocess_test
