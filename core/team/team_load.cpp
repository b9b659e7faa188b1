#include "core/team/team_load.h"

#include <algorithm>

namespace miniqat {

// With the share w of the time lost in waiting, `threads` threads compute in the rest, 1 - w. Alone that takes up to
// `threads` times as long; kAlone of it, since small parts gain less from threads. So being alone is faster if
// w > 1 - 1 / (kAlone * threads).
void TeamLoad::add_wait(Clock::time_point end, Clock::duration lost, int threads) {
  constexpr double kAlone = 0.7;
  // One loss in a short time says little.
  constexpr Clock::duration kLeast = std::chrono::milliseconds(20);
  if (end - window_ > kWindow) window_ = end - lost, lost_ = {};
  lost_ += lost;
  const auto share = std::chrono::duration<double>(lost_) / std::max<Clock::duration>(end - window_, kLeast);
  if (share < 1 - 1 / (kAlone * threads)) return;
  const bool again = last_end_ != Clock::time_point() && end - last_end_ < 4 * kWindow;
  length_ = again ? std::min(2 * length_, kLongest) : kShortest;
  // A wait inside a part may come while it is alone.
  alone_ = alone_until(end);
  begin_ = end;
  until_ = end + length_;
}

bool TeamLoad::is_alone_at(Clock::time_point now) {
  if (!until_) return false;
  if (now < *until_) return true;
  alone_ = alone_until(now);
  until_.reset();
  last_end_ = window_ = now;
  lost_ = {};
  return false;
}

TeamLoad::Clock::duration TeamLoad::alone_until(Clock::time_point now) const {
  return alone_ + (until_ ? std::min(now, *until_) - begin_ : Clock::duration());
}

void TeamLoad::forget(Clock::time_point now) {
  const Clock::duration alone = alone_until(now);
  *this = {};
  alone_ = alone;
}

}  // namespace miniqat
