#include "datasets/dead_links.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "core/text/error.h"
#include "core/text/quote.h"

namespace miniqat::datasets {

namespace fs = std::filesystem;

std::string dead_link_text(const fs::path& link) {
  std::error_code failure;
  return concat("is a link to ", quote(fs::read_symlink(link, failure).string()), ", which is not there");
}

void require_no_dead_links(const fs::path& folder) {
  constexpr std::array<std::string_view, 4> kOfData = {"", ".gz", ".npy", ".csv"};
  std::vector<fs::path> dead;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    std::error_code failure;
    if (entry.path().filename().string().starts_with('.')) continue;
    if (entry.status(failure).type() != fs::file_type::not_found) continue;
    if (std::ranges::find(kOfData, entry.path().extension().string()) != kOfData.end()) dead.push_back(entry.path());
  }
  if (dead.empty()) return;
  std::ranges::sort(dead);
  fail(dead.front(), " ", dead_link_text(dead.front()),
       dead.size() == 1 ? "" : concat(" (", dead.size() - 1, " more in this folder)"),
       "; a class or a part may be missing: put back what it leads to, or remove the link");
}

void require_data_file(const fs::path& path) {
  std::error_code failure;
  const fs::file_type type = fs::status(path, failure).type();
  if (type == fs::file_type::regular) return;
  if (type == fs::file_type::not_found && fs::is_symlink(path, failure)) fail(path, " ", dead_link_text(path));
  fail(path, type == fs::file_type::not_found ? " is not there" : " is no file: data cannot be read from it");
}

}  // namespace miniqat::datasets
