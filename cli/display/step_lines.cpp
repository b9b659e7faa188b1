#include "cli/display/step_lines.h"

#include <algorithm>

namespace miniqat::cli {

bool StepLines::is_due(std::int64_t step, std::int64_t total, std::int64_t steps_per_epoch, Time now) {
  const std::int64_t quarter = std::max<std::int64_t>((steps_per_epoch + 3) / 4, 1);
  const bool too_soon = last_ && now - *last_ < std::chrono::seconds(1);
  if (step != total && (step % quarter != 0 || too_soon)) return false;
  last_ = now;
  return true;
}

}  // namespace miniqat::cli
