#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace miniqat::datasets {

/// Told by its first two bytes, whatever the file is called.
bool is_gzip(std::string_view bytes);

/// Expands gzip data bit by bit. The data must stay; `path` stands in errors.
class GzipReader {
 public:
  GzipReader(std::string_view compressed, std::filesystem::path path);
  ~GzipReader();
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  /// The next bytes, as many as `out` takes; fewer at the end, where checksums have been verified and nothing may
  /// follow the data. Throws Error for corrupt or truncated data.
  std::size_t read(std::span<char> out);

 private:
  class Stream;
  std::unique_ptr<Stream> stream_;
  const std::filesystem::path path_;
  std::size_t produced_ = 0;
  bool ended_ = false;
};

/// The first `limit` bytes of what gzip data expands to, or all when there are fewer; memory grows with what is really
/// there. When the end is reached within the limit, checksums have been verified and nothing may follow the data.
/// Throws Error naming `path` for corrupt or truncated data.
std::string gunzip(std::string_view compressed, std::size_t limit, const std::filesystem::path& path);

}  // namespace miniqat::datasets
