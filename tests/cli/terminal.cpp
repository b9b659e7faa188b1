#include "tests/cli/terminal.h"

#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "core/text/utf8.h"

namespace miniqat::testing {
namespace {

constexpr unsigned kEndAfterSeconds = 120;

winsize size_of(int columns) {
  winsize size{};
  size.ws_row = 24;
  size.ws_col = static_cast<unsigned short>(columns);
  return size;
}

}  // namespace

ProgramOnTerminal::ProgramOnTerminal(const Arguments& arguments, const std::filesystem::path& directory, int columns) {
  unsetenv("MINIQAT_DATA_DIR");
  unsetenv("COLUMNS");
  Arguments words = {program_path()};
  words.insert(words.end(), arguments.begin(), arguments.end());
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

}  // namespace miniqat::testing
