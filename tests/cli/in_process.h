#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "cli/program.h"
#include "tests/cli/program.h"

namespace miniqat::testing {

/// What miniqat() would give, without a process: for command lines that are refused before anything is computed. Only
/// test_cli has the library for it.
inline Outcome in_process(const Arguments& words, const std::filesystem::path& directory) {
  Arguments line = Arguments{"miniqat"} + words;
  std::vector<char*> pointers;
  for (std::string& word : line) pointers.push_back(word.data());
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(directory);
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  Outcome outcome;
  outcome.status = cli::main_program(static_cast<int>(pointers.size()), pointers.data());
  outcome.err = ::testing::internal::GetCapturedStderr();
  outcome.out = ::testing::internal::GetCapturedStdout();
  std::filesystem::current_path(before);
  return outcome;
}

}  // namespace miniqat::testing
