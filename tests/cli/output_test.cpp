// What the program prints must arrive, or it says so; what it refuses must not drive the terminal.

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>

#include "core/files/safetensors.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::output_test {
namespace {

/// The exit status of a shell's line, in which $M is the program; what it prints on stderr goes to the file "err".
class OutputTest : public TinyTaskTest {
 protected:
  int shell(const std::string& line) const {
    const std::string whole =
        "cd '" + place_.path().string() + "' && M='" + program_path() + "' && { " + line + "; } 2> err";
    const int status = std::system(("bash -o pipefail -c \"" + whole + "\"").c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  std::string err() const { return bytes_of(path("err")); }
  void expect_complaint(const std::string& line, const std::string& reason) const {
    EXPECT_EQ(shell(line), 1) << line;
    EXPECT_EQ(err(), "miniqat: cannot write to standard output: " + reason + "\n") << line;
  }
};

TEST_F(OutputTest, AFullStdoutIsAFailure) {
  expect_success(train("run"));
  for (const std::string command : {"rewrite --graph tiny.json", "eval --run run --json",
                                    "verify --run run --json --no-runtimes", "models", "--help", "--version"})
    expect_complaint("\\$M " + command + " > /dev/full", "No space left on device");
}

TEST_F(OutputTest, SoIsAClosedOne) {
  expect_complaint("\\$M models >&-", "Bad file descriptor");
  // The files that a run writes do not get the place where its lines go.
  expect_success(train("run"));
  std::string line = "\\$M";
  for (const std::string& word : train_command("closed")) line += " " + word;
  expect_complaint(line + " >&-", "Bad file descriptor");
  EXPECT_EQ(checkpoint_bytes("closed"), checkpoint_bytes("run"));
}

TEST_F(OutputTest, AReaderThatGoesIsNoReasonForAMessage) {
  shell("\\$M rewrite --graph tiny.json | head -1 > first");
  EXPECT_EQ(err(), "");
  EXPECT_NE(bytes_of(path("first")), "");
  // With SIGPIPE ignored the program sees the error.
  shell("trap '' PIPE; \\$M rewrite --graph tiny.json | head -c 1 > first");
  EXPECT_EQ(err(), "");
}

TEST_F(OutputTest, RefusedNamesAreHarmlessAndShort) {
  const std::string escape = "\x1b]0;title\x07\x1b[31m";
  const std::string long_name(5000, 'n');
  for (const std::string& name : {escape, long_name}) {
    for (const Arguments& line : {Arguments{"train", "--model", name},
                                  {"train", "--dataset", name},
                                  {"train", "--optimizer", name},
                                  {"train", "--steps", name},
                                  {"train", "--steps=" + name},
                                  {"train", "--bn-fold", name},
                                  {name},
                                  {"train", name},
                                  {"train", "--" + name},
                                  {"rewrite", "--graph", name + ".json"},
                                  {"eval", "--run", name},
                                  {"run", "--graph", name},
                                  {"models", "--model", name},
                                  {"inspect", name},
                                  {"rewrite", "--graph", "tiny.json", "--scope", name, "--strict"}}) {
      const Outcome outcome = program(line);
      EXPECT_NE(outcome.status, 0) << line[0];
      expect_error(outcome, outcome.status, {});
      EXPECT_EQ(outcome.err.find_first_of("\x1b\x07"), std::string::npos) << line[0] << " " << outcome.err;
      EXPECT_LT(outcome.err.size(), 1500u) << line[0];
    }
  }
}

// Of files and directories that are there, too, whatever a command says of them.
TEST_F(OutputTest, PathsAreHarmlessWhereAllGoesWell) {
  const std::string escape = "\x1b[31m\xc2\x9b";
  const std::string graph = escape + "g.json", run = escape + "run", ptq = escape + "ptq", file = escape + "out";
  place_.write(graph, tiny_classifier());
  const Arguments trained = train_command(run, {"--model", graph, "--float", "--profile"});
  for (const Arguments& line : {trained,
                                {"train", "--resume", "--out", run},
                                {"train", "--resume", "--out", run, "--steps", "14", "--stop-at", "13"},
                                {"calibrate", "--run", run, "--out", ptq, "--batches", "2"},
                                {"quantize", "--run", run, "--out", escape + "q", "--steps", "2"},
                                {"sensitivity", "--run", run, "--out", escape + "s", "--average-bits", "3"},
                                train_command(escape + "qat", {"--model", graph, "--init-checkpoint", run}),
                                {"eval", "--run", ptq},
                                {"eval", "--run", ptq, "--integer"},
                                {"verify", "--run", ptq, "--runtimes", escape + "nowhere"},
                                {"verify", "--run", ptq, "--no-runtimes"},
                                {"export", "--run", ptq, "--format", "miniqat", "--out", file},
                                {"export", "--run", ptq, "--format", "json", "--out", file + ".json"},
                                {"eval", "--model", file, "--dataset", "mnist", "--data-dir", "digits"},
                                {"inspect", run},
                                {"rewrite", "--graph", graph, "--report", "--out", escape + "q.json"},
                                {"rewrite", "--graph", escape + "q.json", "--report", "--out", escape + "p.json"},
                                {"inspect", "--diff", graph, escape + "q.json"},
                                {"run", "--graph", graph, "--checkpoint", run, "--by-name", "--random-feeds", "--fetch",
                                 "pool1", "--out", file}}) {
    SCOPED_TRACE(::testing::PrintToString(line));
    const Outcome outcome = program(line);
    if (line[0] != "verify") {
      EXPECT_EQ(outcome.status, 0) << outcome.err;
    }
    for (const std::string& text : {outcome.out, outcome.err}) {
      EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
      EXPECT_EQ(text.find("\xc2\x9b"), std::string::npos) << text;
    }
  }
}

TEST_F(OutputTest, NamesInFilesAreHarmless) {
  expect_success(train("run", "--steps 1"));
  Safetensors content = read_safetensors(path("run/checkpoint.safetensors"));
  content.tensors["\x1b[31m\xc2\x9b"] = Tensor::scalar(1.0f);
  write_safetensors(path("hostile.safetensors"), content);
  const Outcome started = train("next", "--steps 1 --init-checkpoint hostile.safetensors --verbose");
  EXPECT_EQ(started.status, 0) << started.err;
  expect_text(started.out, {"\\x1b[31m\\u009b"});
  expect_error(program("eval --run run --checkpoint hostile.safetensors"), 1, {"\\x1b[31m\\u009b"});
}

}  // namespace
}  // namespace miniqat::testing::output_test
