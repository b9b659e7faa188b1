#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"

namespace miniqat::testing {

/// What a runtime made of a model: see the scripts in tests/runtimes.
struct Verdict {
  /// The judge's exit status, and what it printed.
  int status = -1;
  std::string out;
  std::string err;
  /// The raw outputs of all examples.
  std::string outputs;
};

/// Why runtimes cannot be asked: no Node 18 or later, or their packages are not installed. Empty when they can.
std::string why_no_runtimes();

/// Runs tests/runtimes/<script> on a model file and images [n, ...] uint8, with further arguments.
Verdict judge(const std::string& script, const std::filesystem::path& model, const Tensor& images,
              const std::vector<std::string>& arguments = {});

}  // namespace miniqat::testing

/// Skips a test where there are no runtimes; fails it where the environment variable CI is set, which promises them.
#define MINIQAT_NEED_RUNTIMES()                                                           \
  if (const std::string why = ::miniqat::testing::why_no_runtimes(); !why.empty()) {      \
    if (std::getenv("CI") != nullptr) FAIL() << why << "; scripts/install-runtimes --ci"; \
    GTEST_SKIP() << why << "; scripts/install-runtimes installs what Node needs";         \
  }
