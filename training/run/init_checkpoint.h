#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/engine/session.h"

namespace miniqat::training {

/// The variables that a run took over from another one, by name.
struct InitCheckpoint {
  std::filesystem::path source;
  Session::RestoreReport names;
  /// On a run that is unfinished; "" for none.
  std::string note = {};

  /// Ranges that another shape (per tensor instead of per channel, say) starts anew, or, of weights, another folding of
  /// batch norms (late or not), and learned ones that had not begun in the source: both new and unused.
  std::vector<std::string> anew() const;

  /// The counts on a line, then the restored, the new and the unused names one to a line: all of them, or the first few
  /// of each and how many more there are. Without the end of the last line.
  std::string text(bool all) const;
  /// {"source", "restored", "new", "unused"}: all names, and "anew" where there are such.
  nlohmann::ordered_json json() const;
};

/// Gives the session the variables of a .safetensors file, run directory or ONNX model that it has by the same name.
/// From a run that folds batch norms late where this one does not, or the reverse, no range of weights is taken, and no
/// learned range that has not begun: it is where its variables start, and the run has not come to its delay, or, in a
/// file by itself, no range has moved. The steps that dampening has counted are not taken either. Throws Error where
/// there is none, unless it is an ONNX model and neither has variables, and what Session::restore throws. `output`: the
/// one that is wanted of an ONNX model (importers::ImportOptions::output).
InitCheckpoint start_from(const std::filesystem::path& path, Session& session, const std::string& output = {});

}  // namespace miniqat::training
