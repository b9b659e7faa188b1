#include "core/team_choice.h"

#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "core/text/quote.h"

namespace miniqat {

TeamChoice team_choice() {
  static const TeamChoice chosen = [] {
    const char* variable = std::getenv("MINIQAT_TEAM");
    const std::string_view name = variable == nullptr ? "" : variable;
    if (name.empty() || name == "own") return TeamChoice::kOwn;
    if (name == "openmp") return TeamChoice::kOpenMp;
    if (name == "alone") return TeamChoice::kAlone;
    fail("MINIQAT_TEAM must be own, openmp or alone, is ", quote(name));
  }();
  return chosen;
}

}  // namespace miniqat
