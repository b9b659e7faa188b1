#pragma once

#include <cstddef>
#include <string>

#include "training/run_observer.h"

namespace miniqat::cli {

/// How a training gets on, in a line of at most `columns` columns: a bar, steps, epoch, loss, speed and the time left.
/// Where there is less room the bar is shorter; then the speed goes, the epoch, the bar, and the loss. Steps and the
/// time left are never cut.
std::string progress_text(const training::StepReport& report, std::size_t columns);

}  // namespace miniqat::cli
