// The program on a terminal: lines that are written over, as wide as it is now.

#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <tuple>

#include "core/text/utf8.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::terminal_test {
namespace {

constexpr unsigned kEndAfterSeconds = 120;

winsize size_of(int columns) {
  winsize size{};
  size.ws_row = 24;
  size.ws_col = static_cast<unsigned short>(columns);
  return size;
}

/// The miniqat program on a terminal of its own, which is its stdin, stdout and stderr. One that hangs is ended by
/// SIGALRM after two minutes; one that still runs when the object goes is killed.
class ProgramOnTerminal {
 public:
  ProgramOnTerminal(const Arguments& arguments, const std::filesystem::path& directory, int columns);
  ~ProgramOnTerminal();
  ProgramOnTerminal(const ProgramOnTerminal&) = delete;

  /// As somebody does who drags a window's edge.
  void resize(int columns) const;
  /// What the program has drawn so far, once `enough` says so of it or the program has ended.
  const std::string& wait_for(const std::function<bool(const std::string& drawn)>& enough);
  void send(int signal) const;
  /// All that it has drawn, at its end.
  const std::string& wait();

 private:
  int terminal_ = -1;
  pid_t process_ = -1;
  std::string drawn_;
};

ProgramOnTerminal::ProgramOnTerminal(const Arguments& arguments, const std::filesystem::path& directory, int columns) {
  unsetenv("MINIQAT_DATA_DIR");
  unsetenv("COLUMNS");
  Arguments words = Arguments{program_path()} + arguments;
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const winsize size = size_of(columns);
  process_ = forkpty(&terminal_, nullptr, nullptr, &size);
  if (process_ < 0) throw std::runtime_error("cannot make a terminal");
  if (process_ > 0) return;
  alarm(kEndAfterSeconds);
  if (chdir(directory.c_str()) == 0) execv(pointers[0], pointers.data());
  _exit(127);
}

ProgramOnTerminal::~ProgramOnTerminal() {
  if (process_ > 0) {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  close(terminal_);
}

void ProgramOnTerminal::resize(int columns) const {
  const winsize size = size_of(columns);
  ioctl(terminal_, TIOCSWINSZ, &size);
}

const std::string& ProgramOnTerminal::wait_for(const std::function<bool(const std::string& drawn)>& enough) {
  std::array<char, 4096> part{};
  while (!enough(drawn_)) {
    // Fails once the program, which holds the other end, has gone.
    const ssize_t size = read(terminal_, part.data(), part.size());
    if (size <= 0) break;
    drawn_.append(part.data(), static_cast<std::size_t>(size));
  }
  return drawn_;
}

void ProgramOnTerminal::send(int signal) const { kill(process_, signal); }

const std::string& ProgramOnTerminal::wait() {
  wait_for([](const std::string&) { return false; });
  waitpid(process_, nullptr, 0);
  process_ = -1;
  return drawn_;
}

/// The columns of the widest of the lines and drawings in what a terminal was sent: they end at \n and at \r. Sequences
/// that move nothing (\x1b[K) do not count.
std::size_t widest_drawing(const std::string& drawn) {
  std::size_t widest = 0;
  for (std::size_t begin = 0; begin < drawn.size();) {
    const std::size_t end = std::min(drawn.find_first_of("\r\n", begin), drawn.size());
    std::string line = drawn.substr(begin, end - begin);
    const std::string erase = "\x1b[K";
    for (std::size_t at; (at = line.find(erase)) != std::string::npos;) line.erase(at, erase.size());
    widest = std::max(widest, utf8::columns(line));
    begin = end + 1;
  }
  return widest;
}

class TerminalTest : public TinyTaskTest {};

/// The bars that were drawn from `begin` on, each in a line; the lines on epochs between them stay on the terminal.
std::string bars(const std::string& drawn, std::size_t begin) {
  std::string found;
  for (std::size_t at = drawn.find("\r[", begin); at != std::string::npos; at = drawn.find("\r[", at + 1)) {
    const std::size_t end = drawn.find_first_of("\r\n", at + 1);
    // The last one may not be whole yet.
    if (end != std::string::npos) found += drawn.substr(at + 1, end - at - 1) + "\n";
  }
  return found;
}

/// Whether three bars were drawn from `begin` on.
bool has_bars(const std::string& drawn, std::size_t begin) { return std::ranges::count(bars(drawn, begin), '\n') > 2; }

TEST_F(TerminalTest, TheProgressFitsAlsoWhenTheTerminalIsResized) {
  Arguments line = train_command("run");
  line.insert(line.end(), {"--steps", "1000000", "--log-every", "1000000"});
  ProgramOnTerminal program(line, place_.path(), 100);
  const auto drawn_at = [&](int columns) {
    program.resize(columns);
    // The drawing that is under way may have the width of before.
    const std::size_t from = program.wait_for([](const std::string&) { return true; }).size();
    const std::size_t settled = program.wait_for([&](const std::string& all) { return has_bars(all, from); }).size();
    const std::string& all = program.wait_for([&](const std::string& now) { return has_bars(now, settled); });
    return bars(all, settled);
  };
  const std::string wide = drawn_at(100), usual = drawn_at(80), narrow = drawn_at(60);
  EXPECT_GT(widest_drawing(wide), 79u) << wide;
  EXPECT_LT(widest_drawing(usual), 80u) << usual;
  expect_text(usual, {"  epoch "});
  EXPECT_LT(widest_drawing(narrow), 60u) << narrow;
  expect_text(narrow, {" left"});
  EXPECT_EQ(narrow.find(" images/s"), std::string::npos) << narrow;
  program.send(SIGINT);
  program.wait();
}

TEST_F(TerminalTest, LongNamesInALineThatIsWrittenOverLoseTheirMiddle) {
  expect_success(train("float", "--float"));
  ProgramOnTerminal program("sensitivity float --out table --threads 1", place_.path(), 30);
  const std::string drawn = program.wait();
  const std::size_t first = drawn.find("\revaluation "), last = drawn.rfind("\revaluation ");
  ASSERT_NE(first, last) << drawn;
  EXPECT_LT(widest_drawing(drawn.substr(first, last - first)), 30u) << drawn;
}

TEST_F(TerminalTest, NothingIsWrittenOverWhereThereIsNoTerminal) {
  for (const Outcome& outcome : {train("float", "--float"), program("sensitivity float --out table --threads 1"),
                                 program("report float --out page.html")}) {
    expect_success(outcome);
    EXPECT_EQ(outcome.out.find_first_of("\r\x1b"), std::string::npos) << outcome.out;
  }
}

TEST_F(TerminalTest, HelpIsAsWideAsTheTerminal) {
  for (const int columns : {60, 80, 120}) {
    for (const Arguments& line : {Arguments("--help"), {"train", "--help-all"}, {"quantize", "--help"}}) {
      const std::string drawn = ProgramOnTerminal(line, place_.path(), columns).wait();
      EXPECT_LE(widest_drawing(drawn), static_cast<std::size_t>(columns)) << drawn;
      EXPECT_GT(widest_drawing(drawn), static_cast<std::size_t>(columns) * 4 / 5) << drawn;
    }
  }
}

TEST_F(TerminalTest, TablesOfBenchHaveTheColumnsThatFit) {
  const Arguments kernels = "bench --quick --elements 1000 --threads 1 --kernel forward";
  const Arguments two = "bench --quick --elements 1000 --threads 1 --kernel forward,plain_loop";
  const Arguments steps = "bench --quick --steps-only --models lenet5 --batch-size 2 --threads 1";
  for (const auto& [line, head, row] : {std::tuple(kernels, "\nkernel ", "\nforward "),
                                        {two, "\nkernel ", "plain_loop\r\n"},
                                        {steps, "\ntraining step ", "\nlenet5 "}})
    for (const int columns : {80, 120}) {
      const std::string drawn = ProgramOnTerminal(line, place_.path(), columns).wait();
      const std::size_t table = drawn.find(head), last = drawn.rfind(row);
      ASSERT_TRUE(table < last && last < drawn.size()) << drawn;
      const std::string rows = drawn.substr(table, drawn.find('\n', last + 1) - table);
      EXPECT_EQ(rows.find("quartiles") == std::string::npos, columns == 80) << rows;
      EXPECT_LE(widest_drawing(rows), columns == 80 ? 80u : 1000u) << rows;
    }
}

TEST_F(TerminalTest, TablesOfTheFirstDayFit) {
  const std::string models = ProgramOnTerminal({"models"}, place_.path(), 80).wait();
  EXPECT_LE(widest_drawing(models), 80u) << models;
  EXPECT_NE(models.find("LeNet-5 with"), std::string::npos);
  const Outcome inspected = program({"inspect", "tiny.json"});
  expect_success(inspected);
  EXPECT_EQ(inspected.out.find(" \n"), std::string::npos) << "blanks that a narrow terminal shows as lines";
}

}  // namespace
}  // namespace miniqat::testing::terminal_test
