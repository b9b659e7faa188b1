#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace miniqat::datasets {

/// Told by its first two bytes, whatever the file is called.
bool is_gzip(std::string_view bytes);

/// The first `limit` bytes of what gzip data expands to, or all when there are fewer; memory grows with what is really
/// there. When the end is reached within the limit, checksums have been verified and nothing may follow the data.
/// Throws Error naming `path` for corrupt or truncated data.
std::string gunzip(std::string_view compressed, std::size_t limit, const std::filesystem::path& path);

}  // namespace miniqat::datasets
