#include "datasets/sound/sound_files.h"

#include <algorithm>
#include <array>

#include "datasets/data_dir.h"

namespace miniqat::datasets {
namespace {

namespace fs = std::filesystem;

/// Calls visit(path) for each sound below the folder, until it returns false.
template <class Visit>
void walk_sounds(const fs::path& folder, const Visit& visit) {
  walk_files(folder, [&](const fs::directory_entry& entry) {
    return entry.is_directory() || !is_sound(entry.path()) || visit(entry.path());
  });
}

}  // namespace

std::span<const std::string_view> sound_endings() {
  static constexpr std::array<std::string_view, 5> kEndings = {".wav", ".flac", ".ogg", ".oga", ".aiff"};
  return kEndings;
}

bool is_sound(const fs::path& path) {
  return std::ranges::find(sound_endings(), lower_ending(path)) != sound_endings().end();
}

void walk_files(const fs::path& folder, const FileVisit& visit) {
  constexpr auto kLinks = fs::directory_options::follow_directory_symlink;
  for (fs::recursive_directory_iterator place(folder, kLinks), end; place != end; ++place) {
    const std::string name = place->path().filename().string();
    const bool passed_over = name.starts_with('.') || name == kNoiseFolder, is_folder = place->is_directory();
    const bool is_far_link = is_folder && place.depth() > 0 && place->is_symlink();
    if (is_folder && (passed_over || is_far_link)) place.disable_recursion_pending();
    if (!passed_over && (!is_folder || is_far_link) && !visit(*place)) return;
  }
}

std::vector<std::string> sounds_in(const fs::path& root, const fs::path& folder) {
  std::vector<std::string> files;
  walk_sounds(folder, [&](const fs::path& path) {
    files.push_back(path.lexically_relative(root).string());
    return true;
  });
  std::ranges::sort(files);
  return files;
}

bool has_sounds(const fs::path& folder) {
  bool found = false;
  walk_sounds(folder, [&](const fs::path&) { return !(found = true); });
  return found;
}

}  // namespace miniqat::datasets
