#pragma once

#include <filesystem>
#include <string>

namespace miniqat::datasets {

/// `is a link to "../annex/7f.png", which is not there`
std::string dead_link_text(const std::filesystem::path& link);

/// In a folder of data: throws Error that names the links to nothing in it, without hidden ones, that may have led to a
/// class, a part or a file of data (no ending, .gz, .npy or .csv). Who does not see them reads less than is meant.
void require_no_dead_links(const std::filesystem::path& folder);

/// Throws Error unless `path` is there and a file: a FIFO would keep its reader waiting for ever.
void require_data_file(const std::filesystem::path& path);

}  // namespace miniqat::datasets
