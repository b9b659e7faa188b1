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

}  // namespace miniqat::datasets
