#pragma once

#include <functional>
#include <string>

namespace miniqat::benchmarks {

/// Runs the code of somebody else in a process of its own, so that its crash is an error and not ours. Returns the
/// result of `work`, or the text of an Error that it throws. If it throws anything else, or the process ends otherwise,
/// returns the cause: "forward of 17 elements: wrote right after the end of y", "... ended by signal 8 (Floating point
/// exception)", "... did not end within 60 seconds". At most 4,000 bytes. `work` runs on one thread, and may start no
/// others. Throws Error when there can be no process.
std::string run_trial(const std::function<std::string()>& work, int limit_seconds = 60);

/// Within `work`: what is done next, for the text.
void trial_step(const std::string& what);

}  // namespace miniqat::benchmarks
