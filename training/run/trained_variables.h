#pragma once

#include <filesystem>
#include <string>

#include "training/run/run_directory.h"

namespace miniqat::training {

/// How to go on after a NonFiniteLoss, which a run with or without dampening meets again from its last checkpoint.
std::string after_non_finite(bool dampens);

/// Variables to take over, as a path names them.
struct TrainedVariables {
  /// The .safetensors file.
  std::filesystem::path file;
  /// For an unfinished run "note: the run in ... is unfinished: ...", with the step of its checkpoint and the way to go
  /// on. A run is unfinished if its summary.json is missing or does not call it complete. "" for a run that is
  /// complete, and for a file.
  std::string note;
};

/// Finds the variables of `path`, which is a .safetensors file or a run directory. Throws Error where there is no such
/// thing, and for a run that has not trained a step that its checkpoint knows: its variables are those it began with.
TrainedVariables trained_variables(const std::filesystem::path& path);

/// The note on a run that is not complete, also for one without a trained step. Throws Error for a checkpoint that is
/// none.
std::string unfinished_note(const RunDirectory& run);

/// Throws Error that says the same for a run that is not complete.
void require_complete(const RunDirectory& run);

}  // namespace miniqat::training
