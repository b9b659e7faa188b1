#include "training/settings/save_interval.h"

#include <charconv>

#include "core/text/quote.h"
#include "training/settings/usage_error.h"

namespace miniqat::training {
namespace {

template <class Number>
bool parse(std::string_view text, Number& number) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failure == std::errc{} && end == text.data() + text.size();
}

}  // namespace

SaveInterval::SaveInterval(const std::string& text) {
  constexpr std::int64_t kMostSteps = std::int64_t{1} << 40;
  constexpr double kMostSeconds = 1e9;
  double seconds = 0;
  // Stated by what is right: a NaN fails every comparison.
  if (parse(text, steps_) && steps_ >= 1 && steps_ <= kMostSteps) return;
  steps_ = 0;
  if (text.ends_with('s') && parse(std::string_view(text).substr(0, text.size() - 1), seconds) && seconds > 0 &&
      seconds <= kMostSeconds) {
    seconds_ = std::chrono::duration<double>(seconds);
    return;
  }
  throw UsageError(concat("--save-every must be a number of steps, as 500, or of seconds, as 60s; got ", quote(text)));
}

bool SaveInterval::is_due(std::int64_t step, std::int64_t saved_step, Clock::time_point saved) const {
  return steps_ > 0 ? step - saved_step >= steps_ : Clock::now() - saved >= seconds_;
}

}  // namespace miniqat::training
