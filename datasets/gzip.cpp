#include "datasets/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <new>

#include "core/error.h"

namespace miniqat::datasets {

namespace {

/// zlib's window bits for the largest window; 16 more ask for a gzip header.
constexpr int kGzipWindow = 15 + 16;
constexpr std::size_t kFirstChunk = 64 << 10;

class InflateStream {
 public:
  explicit InflateStream(std::string_view input) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));
    stream_.avail_in = static_cast<uInt>(input.size());
    if (inflateInit2(&stream_, kGzipWindow) != Z_OK) throw std::bad_alloc();
  }
  ~InflateStream() { inflateEnd(&stream_); }
  InflateStream(const InflateStream&) = delete;
  InflateStream& operator=(const InflateStream&) = delete;

  z_stream* operator->() { return &stream_; }
  int inflate_into(char* out, std::size_t size) {
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = static_cast<uInt>(size);
    return inflate(&stream_, Z_NO_FLUSH);
  }
  void next_member() { inflateReset(&stream_); }

 private:
  z_stream stream_{};
};

}  // namespace

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

std::string gunzip(std::string_view compressed, std::size_t limit, const std::filesystem::path& path) {
  InflateStream stream(compressed);
  std::string out;
  std::size_t produced = 0;
  while (produced < limit) {
    if (produced == out.size()) out.resize(std::min(limit, std::max(2 * produced, kFirstChunk)));
    const int status = stream.inflate_into(out.data() + produced, out.size() - produced);
    produced = out.size() - stream->avail_out;
    if (status == Z_STREAM_END) {
      if (stream->avail_in == 0) break;
      stream.next_member();
    } else if (status == Z_BUF_ERROR) {
      fail(path, " is cut short: its gzip data ends after ", produced, " bytes expanded");
    } else if (status != Z_OK) {
      fail(path, " has corrupt gzip data (", stream->msg != nullptr ? stream->msg : zError(status), ") after ",
           produced, " bytes expanded");
    }
  }
  out.resize(produced);
  return out;
}

}  // namespace miniqat::datasets
