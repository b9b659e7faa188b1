#include "datasets/gzip.h"

#include "tests/datasets/dataset_files.h"
#include "tests/fuzz/readers/reader.h"

namespace miniqat::fuzz::gzip_reader {

using namespace miniqat::datasets;

MINIQAT_READER(gzip)(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kLimit = 1 << 20;
  const std::string_view bytes = fuzz::text_of(data, size);
  std::string head, all;
  const bool begins = fuzz::accepts([&] { head = gunzip(bytes, 100, "in"); });
  const bool reads = fuzz::accepts([&] { all = gunzip(bytes, kLimit, "in"); });
  fuzz::require(head.size() <= 100 && all.size() <= kLimit, "no more is expanded than asked for");
  fuzz::require(begins || !reads, "a whole that reads has a beginning that reads");
  if (!reads) return 0;
  fuzz::require(head == all.substr(0, 100), "the beginning is that of the whole");
  fuzz::require(gunzip(testing::gzip_bytes(all, 1), kLimit + 1, "copy") == all, "what was expanded compresses again");
  return 0;
}

}  // namespace miniqat::fuzz::gzip_reader
