#include "core/team/team_choice.h"

#include <cstdlib>
#include <string_view>

#include "core/text/error.h"
#include "core/text/quote.h"

namespace miniqat {
namespace {

bool regions_of_onednn_come = false;

}  // namespace

void expect_regions_of_onednn() { regions_of_onednn_come = true; }

TeamChoice team_choice() {
  static const TeamChoice chosen = [] {
    const char* variable = std::getenv("MINIQAT_TEAM");
    const std::string_view name = variable == nullptr ? "" : variable;
    if (name.empty()) return regions_of_onednn_come ? TeamChoice::kOwn : TeamChoice::kOpenMp;
    if (name == "own") return TeamChoice::kOwn;
    if (name == "openmp") return TeamChoice::kOpenMp;
    if (name == "alone") return TeamChoice::kAlone;
    fail("MINIQAT_TEAM must be own, openmp or alone, is ", quote(name));
  }();
  return chosen;
}

}  // namespace miniqat
