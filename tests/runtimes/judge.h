#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "core/tensors/tensor.h"

namespace miniqat::testing {

/// A model file's bytes, and images [n, ...] uint8 or float32 to run it on.
struct Case {
  std::string model;
  Tensor images;
};

/// What a runtime made of some cases: see the scripts in runtimes/.
struct Verdict {
  /// The judge's exit status, and what it printed: a line of JSON for each case on stdout.
  int status = -1;
  std::string out;
  std::string err;
  /// Each case's raw outputs of all examples; empty unless the status is 0.
  std::vector<std::string> outputs;
  /// What the runtime left in --optimized, case by case, where it was asked for.
  std::vector<std::string> optimized;
};

/// The scripts that ask the runtimes.
inline constexpr const char* kLiteRt = "litert.mjs";
inline constexpr const char* kOnnxRuntime = "onnxruntime.mjs";

/// Why there is no Node 18 or later; empty when there is.
std::string why_no_node();

/// Why runtimes cannot be asked: no Node 18 or later, or the packages that runtimes/ locks are not installed.
/// Empty when they can.
std::string why_no_runtimes();

/// Runs a script, by its path from runtimes/, once on all cases, with further arguments. `keep_optimized` asks
/// ONNX Runtime for its optimized graphs.
Verdict judge(const std::string& script, const std::vector<Case>& cases, const std::vector<std::string>& arguments = {},
              bool keep_optimized = false);

/// Expects that the judge failed (status 1) and said why in one line, which holds `part`.
void expect_complaint(const Verdict& verdict, const std::string& part);

}  // namespace miniqat::testing

/// Skips a test where there is no Node; fails it where the environment variable CI is set, which promises one.
#define MINIQAT_NEED_NODE()                                                           \
  if (const std::string why = ::miniqat::testing::why_no_node(); !why.empty()) {      \
    if (std::getenv("CI") != nullptr) FAIL() << why << "; scripts/install-deps --ci"; \
    GTEST_SKIP() << why << "; scripts/install-deps --ci installs it";                 \
  }

/// Skips a test where there are no runtimes; fails it where the environment variable CI is set, which promises them.
#define MINIQAT_NEED_RUNTIMES()                                                           \
  if (const std::string why = ::miniqat::testing::why_no_runtimes(); !why.empty()) {      \
    if (std::getenv("CI") != nullptr) FAIL() << why << "; scripts/install-runtimes --ci"; \
    GTEST_SKIP() << why << "; scripts/install-runtimes installs what Node needs";         \
  }
