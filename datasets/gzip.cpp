#include "datasets/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <new>
#include <utility>

#include "core/platform/interruption.h"
#include "core/text/error.h"

namespace miniqat::datasets {

namespace {

/// zlib's window bits for the largest window; 16 more ask for a gzip header.
constexpr int kGzipWindow = 15 + 16;
constexpr std::size_t kFirstChunk = 64 << 10;

}  // namespace

class GzipReader::Stream {
 public:
  explicit Stream(std::string_view input) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));
    stream_.avail_in = static_cast<uInt>(input.size());
    if (inflateInit2(&stream_, kGzipWindow) != Z_OK) throw std::bad_alloc();
  }
  ~Stream() { inflateEnd(&stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

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

GzipReader::GzipReader(std::string_view compressed, std::filesystem::path path)
    : stream_(std::make_unique<Stream>(compressed)), path_(std::move(path)) {}
GzipReader::~GzipReader() = default;

std::size_t GzipReader::read(std::span<char> out) {
  std::size_t got = 0;
  while (got < out.size() && !ended_) {
    interruption_point();
    Stream& stream = *stream_;
    // zlib counts no more expanded bytes at once.
    const std::size_t size = std::min<std::size_t>(out.size() - got, std::size_t{1} << 30);
    const int status = stream.inflate_into(out.data() + got, size);
    got += size - stream->avail_out;
    produced_ += size - stream->avail_out;
    if (status == Z_STREAM_END) {
      ended_ = stream->avail_in == 0;
      if (!ended_) stream.next_member();
    } else if (status == Z_BUF_ERROR) {
      fail(path_, " is cut short: its gzip data ends after ", produced_, " bytes expanded");
    } else if (status != Z_OK) {
      fail(path_, " has corrupt gzip data (", stream->msg != nullptr ? stream->msg : zError(status), ") after ",
           produced_, " bytes expanded");
    }
  }
  return got;
}

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

std::string gunzip(std::string_view compressed, std::size_t limit, const std::filesystem::path& path) {
  GzipReader reader(compressed, path);
  std::string out;
  std::size_t produced = 0;
  do {
    out.resize(std::min(limit, std::max(2 * produced, kFirstChunk)));
    produced += reader.read(std::span(out).subspan(produced));
  } while (produced == out.size() && produced < limit);
  out.resize(produced);
  return out;
}

}  // namespace miniqat::datasets
