#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace miniqat::datasets {

/// `data_dir`, or $MINIQAT_DATA_DIR when that is empty; empty without either.
std::filesystem::path given_data_dir(const std::filesystem::path& data_dir);

/// The directory of a data set that lives in files: of given_data_dir(), the
/// subfolder `name` if there is one, else the directory itself. Throws Error when none is given or it is no directory;
/// `files` says in the message what it should hold.
std::filesystem::path resolve_data_dir(const std::string& name, const std::filesystem::path& data_dir,
                                       std::string_view files);

/// The first of `candidates`, paths relative to `directory`, that exists. Throws Error that lists all of them.
std::filesystem::path find_data_file(const std::string& name, const std::filesystem::path& directory,
                                     const std::vector<std::string>& candidates);

/// The ending of a name in lower case, with its dot; "" without one.
std::string lower_ending(const std::filesystem::path& path);

/// `is a link to "../annex/7f.png", which is not there`
std::string dead_link_text(const std::filesystem::path& link);

/// In a folder of data: throws Error that names the links to nothing in it, without hidden ones, that may have led to a
/// class, a part or a file of data (no ending, .gz, .npy or .csv). Who does not see them reads less than is meant.
void require_no_dead_links(const std::filesystem::path& folder);

/// Throws Error unless `path` is there and a file: a FIFO would keep its reader waiting for ever.
void require_data_file(const std::filesystem::path& path);

}  // namespace miniqat::datasets
