#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace miniqat::testing {

/// A TensorFlow Lite file's bytes and the integers [n, ...] uint8 to run it on.
struct LiteRtRun {
  std::string model;
  Tensor images;
};

/// The raw outputs of all runs, in one Node process (tests/runtimes/litert.mjs); nothing where Node or LiteRT is not
/// installed. Throws Error with its message when a run fails. `flags` go to litert.mjs.
std::optional<std::vector<std::string>> run_in_litert(const std::vector<LiteRtRun>& runs,
                                                      const std::string& flags = "");

}  // namespace miniqat::testing
