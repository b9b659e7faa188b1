#pragma once

#include <string>

namespace miniqat::cli {

/// For a command that was given without arguments, `eval` say, and the newest run below runs/ that it can work on: "for
/// the newest run: miniqat eval runs/a", as a shell takes it. Without such a run, the command that makes one. "" for
/// commands that need no run.
std::string advice_for_newest_run(const std::string& command);

}  // namespace miniqat::cli
