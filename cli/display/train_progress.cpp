#include "cli/display/train_progress.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

#include "core/text/error.h"
#include "training/train/pace.h"

namespace miniqat::cli {
namespace {

std::string number_text(const char* format, double number) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, number);
  return text.data();
}

std::string bar_of(const training::StepReport& report, std::size_t width) {
  const auto total = static_cast<std::size_t>(std::max<std::int64_t>(report.total_steps, 1));
  const std::size_t filled = width * std::min(static_cast<std::size_t>(report.step), total) / total;
  return concat("[", std::string(filled, '#'), std::string(width - filled, '.'), "] ");
}

}  // namespace

std::string progress_text(const training::StepReport& report, std::size_t columns) {
  constexpr std::size_t kWidestBar = 24, kNarrowestBar = 10, kAroundBar = 3;
  const std::string steps = concat(report.step, "/", report.total_steps);
  const std::string epoch = number_text("  epoch %.2f", report.epoch), loss = number_text("  loss %.4f", report.loss);
  const std::string speed = number_text("  %.0f images/s", report.images_per_second);
  const std::string left = concat("  ", training::clock_text(report.seconds_left), " left");
  for (const std::string& text :
       {concat(steps, epoch, loss, speed, left), concat(steps, epoch, loss, left), concat(steps, loss, left)})
    if (text.size() + kAroundBar + kNarrowestBar <= columns)
      return bar_of(report, std::min(columns - text.size() - kAroundBar, kWidestBar)) + text;
  const std::string without_bar = concat(steps, loss, left);
  return without_bar.size() <= columns ? without_bar : concat(steps, left);
}

}  // namespace miniqat::cli
