#include "cli/display/batch_display.h"

#include <algorithm>
#include <cstdio>

#include "cli/display/print_note.h"
#include "cli/interrupt.h"
#include "cli/with_flags.h"
#include "core/text/error.h"

namespace miniqat::cli {

void BatchDisplay::say(const std::string& text) {
  line_.clear();
  std::printf("%s\n", with_flags(text).c_str());
  std::fflush(stdout);
}

void BatchDisplay::warn(const std::string& text) { print_note(text); }

void BatchDisplay::on_batch(std::int64_t done, std::int64_t total) {
  const std::string text = concat("batch ", done, "/", total);
  line_.show(text);
  const bool quarter = done % std::max<std::int64_t>((total + 3) / 4, 1) == 0;
  if (done == total || (!line_.on_terminal() && quarter)) say(text);
}

bool BatchDisplay::wants_to_stop() { return InterruptGuard::requested(); }

}  // namespace miniqat::cli
