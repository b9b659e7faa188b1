#include "core/threads/cpu_quota.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <locale>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace miniqat {
namespace {

namespace fs = std::filesystem;

/// Where a hierarchy of groups can be seen: as a container has it, `top` may be a group far below the real top.
struct Hierarchy {
  /// 1 or 2.
  int version = 0;
  /// The group that is shown at `place`.
  std::string top;
  std::string place;
};

std::vector<std::string> words_of(const std::string& line, char between) {
  std::vector<std::string> words;
  std::istringstream text(line);
  for (std::string word; std::getline(text, word, between);) words.push_back(word);
  return words;
}

bool has_word(const std::string& list, std::string_view word) {
  return std::ranges::count(words_of(list, ','), word) > 0;
}

/// Lines such as "36 35 98:0 /top /place rw,noatime - cgroup2 cgroup2 rw" (proc(5)).
std::vector<Hierarchy> hierarchies(const fs::path& root) {
  std::vector<Hierarchy> found;
  std::ifstream file(root / "proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> words = words_of(line, ' ');
    const auto dash = std::ranges::find(words, "-");
    if (words.size() < 6 || words.end() - dash < 4) continue;
    const std::string& kind = dash[1];
    if (kind == "cgroup2") found.push_back({2, words[3], words[4]});
    if (kind == "cgroup" && has_word(dash[3], "cpu")) found.push_back({1, words[3], words[4]});
  }
  return found;
}

/// Lines such as "4:cpu,cpuacct:/group", of version 2 "0::/group". Empty if there is none.
std::string group_of_process(const fs::path& root, int version) {
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (version == 2 ? controllers.empty() : has_word(controllers, "cpu")) return line.substr(second + 1);
  }
  return {};
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::optional<double> quota_in(const fs::path& group, int version) {
  std::istringstream text(version == 2
                              ? text_of(group / "cpu.max")
                              : text_of(group / "cpu.cfs_quota_us") + " " + text_of(group / "cpu.cfs_period_us"));
  text.imbue(std::locale::classic());
  double quota = 0, period = 0;
  // "max", -1 and missing files are no limits.
  if (!(text >> quota >> period) || quota <= 0 || period <= 0) return {};
  return quota / period;
}

}  // namespace

std::optional<double> cpu_quota(const fs::path& root) {
  std::optional<double> least;
  for (const Hierarchy& hierarchy : hierarchies(root)) {
    std::string group = group_of_process(root, hierarchy.version);
    if (group.empty()) continue;
    if (hierarchy.top != "/" && group.starts_with(hierarchy.top)) group = group.substr(hierarchy.top.size());
    const fs::path place = root / fs::path(hierarchy.place).relative_path();
    for (fs::path inner = fs::path(group).relative_path();; inner = inner.parent_path()) {
      const std::optional<double> quota = quota_in(place / inner, hierarchy.version);
      if (quota) least = std::min(*quota, least.value_or(*quota));
      if (inner.empty()) break;
    }
  }
  return least;
}

int cores_of_quota(std::optional<double> quota) {
  constexpr int kNoLimit = std::numeric_limits<int>::max();
  if (!quota || *quota >= kNoLimit) return kNoLimit;
  return std::max(1, static_cast<int>(std::ceil(*quota)));
}

}  // namespace miniqat
