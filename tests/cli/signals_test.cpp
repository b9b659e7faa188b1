// A signal while a command waits or computes: it ends at once, by that signal.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include "core/text/json.h"
#include "core/text/suggest.h"
#include "tests/cli/run_files.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::signals_test {
namespace {

namespace fs = std::filesystem;

class SignalsTest : public TinyTaskTest {
 protected:
  /// A pipe that nobody writes into.
  std::string pipe(const std::string& name) const {
    EXPECT_EQ(::mkfifo(path(name).c_str(), 0600), 0);
    return name;
  }
  /// Ends the program by a signal once it has opened the pipe.
  Outcome ended_while_reading(const Arguments& line, const std::string& pipe) const {
    Program program(line, place_.path());
    // A writer finds a reader; the program reads on until the last writer has gone.
    int writer = -1;
    for (int naps = 0; naps < 5000 && writer < 0; ++naps) {
      writer = ::open(path(pipe).c_str(), O_WRONLY | O_NONBLOCK);
      if (writer < 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    EXPECT_GE(writer, 0) << "nobody reads the pipe";
    program.send(SIGTERM);
    const Outcome outcome = program.wait();
    if (writer >= 0) ::close(writer);
    return outcome;
  }
};

// Without the fix these hang until SIGALRM ends them.
TEST_F(SignalsTest, EndsAWaitForAPipe) {
  make_float_run(place_, "tiny", "float");
  const std::string file = pipe("fifo");
  for (const Arguments& line :
       std::vector<Arguments>{train_command("run", {"--config", file}),
                              train_command("run", {"--bits-config", file}),
                              train_command("run", {"--class-weights", file}),
                              train_command("run", {"--init-checkpoint", file}),
                              {"calibrate", "--run", "float", "--bits-config", file, "--out", "run"},
                              {"quantize", "--run", "float", "--bits-config", file, "--out", "run"},
                              {"rewrite", "--graph", file}}) {
    SCOPED_TRACE(joined(line, " "));
    const Outcome outcome = ended_while_reading(line, file);
    EXPECT_EQ(outcome.status, 128 + SIGTERM) << outcome.err;
    EXPECT_FALSE(fs::exists(path("run")));
  }
}

// `--config <(...)`
TEST_F(SignalsTest, APipeThatIsWrittenIsReadToItsEnd) {
  const std::string file = pipe("fifo");
  std::thread writer([&] { std::ofstream(path(file)) << R"({"seed": 77, )" << std::flush << R"("log_every": 3})"; });
  expect_success(train("run", {"--config", file}));
  writer.join();
  EXPECT_EQ(json_of(path("run/config.json"))["seed"], 77);
}

TEST_F(SignalsTest, AnArchiveThatIsAPipeIsRefused) {
  pipe("data.npz");
  expect_error(program("train --dataset data.npz --out run"), 1, {"data.npz", "is no file"});
}

}  // namespace
}  // namespace miniqat::testing::signals_test
