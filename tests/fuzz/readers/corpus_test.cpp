// Every input of the fuzzers' corpus once more, in the ordinary tests: what once went wrong stays right.

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>

#include "tests/cli/program.h"

// The fuzzers' LLVMFuzzerTestOneInput, which CMakeLists.txt renames.
#define MINIQAT_DATA_READERS(X) X(cifar10) X(csv) X(gzip) X(idx) X(npy) X(npz) X(number_table) X(picture) X(ts)
#define MINIQAT_READERS(X) \
  MINIQAT_DATA_READERS(X)  \
  X(graph_json) X(layer_bits) X(model_file) X(onnx) X(run_directory) X(safetensors)
#define MINIQAT_DECLARE(reader) extern "C" int fuzz_##reader(const std::uint8_t* data, std::size_t size);
MINIQAT_READERS(MINIQAT_DECLARE)

namespace miniqat::corpus_test {
namespace {

namespace fs = std::filesystem;

const std::map<std::string, int (*)(const std::uint8_t*, std::size_t)> kReaders = {
#define MINIQAT_ENTRY(reader) {#reader, fuzz_##reader},
    MINIQAT_READERS(MINIQAT_ENTRY)};

const fs::path kCorpus = fs::path(MINIQAT_SOURCE_DIR) / "tests" / "fuzz" / "corpus";

TEST(ReaderCorpus, EveryInputKeepsThePromises) {
  for (const auto& [name, read] : kReaders) {
    int inputs = 0;
    for (const auto& entry : fs::directory_iterator(kCorpus / name)) {
      SCOPED_TRACE(entry.path());
      const std::string bytes = testing::bytes_of(entry.path());
      read(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
      ++inputs;
    }
    EXPECT_GE(inputs, 5) << name;
  }
}

TEST(ReaderCorpus, EveryReaderHasOne) {
  for (const auto& entry : fs::directory_iterator(kCorpus))
    EXPECT_TRUE(kReaders.contains(entry.path().filename())) << entry.path();
}

}  // namespace
}  // namespace miniqat::corpus_test
