#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "core/text/error.h"
#include "core/text/quote.h"
#include "tests/temp_dir.h"

namespace miniqat::shell_quote_test {
namespace {

namespace fs = std::filesystem;

/// Each would do something if a shell read it: make a file x, end a quote, take the word apart, find another file.
const std::vector<std::string>& hostile_names() {
  static const std::vector<std::string> kNames = {"my runs/a$(touch x)'b",
                                                  "`touch x`",
                                                  "'; touch x; '",
                                                  "\"; touch x; \"",
                                                  "a & touch x",
                                                  "a | touch x > x",
                                                  "\\'$(touch x)",
                                                  "\\\\'`touch x`\\",
                                                  "!!",
                                                  "$HOME ${HOME} ~",
                                                  "~",
                                                  "*",
                                                  "[a-z]?{b,c}",
                                                  "#none",
                                                  "=ls",
                                                  "a=b c",
                                                  "",
                                                  " ",
                                                  "Grüße, 数字",
                                                  "%1 ^a",
                                                  "(touch x)"};
  return kNames;
}

bool has_shell(const std::string& shell) {
  return std::system(concat("command -v ", shell, " > /dev/null").c_str()) == 0;
}

/// What a shell hands on for the word, having run in a folder of its own, in which it must leave nothing else.
std::string read_by(const std::string& shell, const std::string& word) {
  const testing::TempDir place;
  place.write("script", concat("printf %s ", word, " > out\n"));
  const int status = std::system(concat("cd '", place.path().string(), "' && ", shell, " script 2> err").c_str());
  EXPECT_EQ(status, 0) << shell << " " << word;
  EXPECT_EQ(std::distance(fs::directory_iterator(place.path()), {}), 3) << shell << " did something for " << word;
  std::ifstream file(place.path() / "out", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(ShellQuote, EveryShellReadsTheNameAndDoesNothing) {
  for (const std::string shell : {"sh", "bash", "zsh", "fish"}) {
    if (!has_shell(shell)) continue;
    for (const std::string& name : hostile_names())
      EXPECT_EQ(read_by(shell, shell_quoted(name)), name) << shell << " " << shell_quoted(name);
  }
}

/// Words of any bytes: a third of them are marks that mean something to a shell.
TEST(ShellQuote, RandomNamesSurviveBash) {
  const std::string marks = "'\"\\$`!&|;<>(){}[]*?~#=% \n\t\x1b\xff";
  for (int seed = 0; seed < 60; ++seed) {
    std::string name;
    for (unsigned i = 0, state = static_cast<unsigned>(seed) * 2654435761u + 1; i < 12; ++i) {
      state = state * 1664525u + 1013904223u;
      const unsigned drawn = state >> 16;
      name += drawn % 3 == 0 ? marks[drawn / 3 % marks.size()] : static_cast<char>('a' + drawn % 26);
    }
    EXPECT_EQ(read_by("bash", shell_quoted(name)), name) << shell_quoted(name);
  }
}

/// Control characters and broken UTF-8 are numbers in the word, so that a terminal obeys none and print_error() changes
/// nothing. A shell that does not know them reads another name, and does nothing either.
TEST(ShellQuote, WhatATerminalWouldObeyIsANumber) {
  for (const std::string& name : {std::string("a\n$(touch x)'b\\"), std::string("\x1b[31m`touch x`\xff")}) {
    const std::string word = shell_quoted(name);
    EXPECT_EQ(printable(word), word);
    for (const std::string shell : {"bash", "zsh"})
      if (has_shell(shell)) {
        EXPECT_EQ(read_by(shell, word), name) << word;
      }
    read_by("sh", word);
  }
  EXPECT_EQ(shell_quoted("a\nb"), "$'a\\012b'");
}

TEST(ShellQuote, PlainWordsStayAsTheyAre) {
  for (const std::string word : {"runs/lenet5-mnist-w8a8-seed1", "--learning-rate=1e-3", "a+b,c:d@e%f", "-x", "0.5"})
    EXPECT_EQ(shell_quoted(word), word);
  EXPECT_EQ(shell_quoted("my run"), "'my run'");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quoted(""), "''");
}

TEST(ShellQuote, APathThatBeginsWithADashIsNoFlag) {
  EXPECT_EQ(shell_path("-x"), "./-x");
  EXPECT_EQ(shell_path("-my run"), "'./-my run'");
  EXPECT_EQ(shell_path("runs/-x"), "runs/-x");
  EXPECT_EQ(shell_path(""), "''");
}

}  // namespace
}  // namespace miniqat::shell_quote_test
