#include "datasets/gzip.h"

#include <zlib.h>

#include "tests/fuzz/readers/reader.h"

using namespace miniqat;
using namespace miniqat::datasets;

namespace {

std::string compressed(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kLimit = 1 << 20;
  const std::string_view bytes = fuzz::text_of(data, size);
  std::string head, all;
  const bool begins = fuzz::accepts([&] { head = gunzip(bytes, 100, "in"); });
  const bool reads = fuzz::accepts([&] { all = gunzip(bytes, kLimit, "in"); });
  fuzz::require(head.size() <= 100 && all.size() <= kLimit, "no more is expanded than asked for");
  fuzz::require(begins || !reads, "a whole that reads has a beginning that reads");
  if (!reads) return 0;
  fuzz::require(head == all.substr(0, 100), "the beginning is that of the whole");
  fuzz::require(gunzip(compressed(all), kLimit + 1, "copy") == all, "what was expanded compresses again");
  return 0;
}
