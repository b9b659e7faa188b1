#pragma once

#include <string>

#include "core/engine/profile.h"

namespace miniqat {

/// For people: milliseconds a step for every part, the slowest first, then for every op type and for every phase. Says
/// so when there is nothing to show.
std::string profile_table(const Profile& profile);

/// The kept steps in Chrome's trace event format, for chrome://tracing or ui.perfetto.dev: complete events ("ph": "X")
/// on one thread, a step around its parts, times in microseconds since the first of them; "cat" is "step" or the phase.
std::string profile_trace(const Profile& profile);

}  // namespace miniqat
