#include "cli/notes.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include "distributed/launch.h"
#include "training/settings/settings.h"
#include "training/settings/train_settings.h"

namespace miniqat::cli {
namespace {

bool is_setting(const std::string& name) {
  static const std::set<std::string> names = [] {
    std::set<std::string> all;
    const auto add = [&](const char* setting, auto, const char*) { all.insert(setting); };
    training::TrainSettings::visit(add);
    training::RewriteSettings::visit(add);
    return all;
  }();
  return names.contains(name);
}

}  // namespace

std::string with_flags(const std::string& text) {
  std::string result;
  std::size_t from = 0;
  for (std::size_t open = text.find('`'); open != std::string::npos; open = text.find('`', open + 1)) {
    const std::size_t close = text.find('`', open + 1);
    if (close == std::string::npos) break;
    const std::string name = text.substr(open + 1, close - open - 1);
    if (!is_setting(name)) continue;
    result += text.substr(from, open - from) + training::flag_of(name);
    from = close + 1;
    open = close;
  }
  return result + text.substr(from);
}

void print_error(const std::string& who, const std::string& text) {
  if (const int rank = distributed::launched_rank(); rank > 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2000 + 100 * std::min(rank, 20)));
    std::fprintf(stderr, "rank %d: ", rank);
  }
  std::fprintf(stderr, "%s: %s\n", who.c_str(), printable(with_flags(text)).c_str());
}

}  // namespace miniqat::cli
