// Every input of the fuzzers' corpus once more, in the ordinary tests: what once went wrong stays right.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "core/text/error.h"
#include "tests/source_dir.h"

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

const fs::path kCorpus = source_dir() / "tests/fuzz/corpus";

/// As corpus.py writes them.
std::string bytes_of(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      bytes += text[i];
    } else if (text.at(++i) == 'n') {
      bytes += '\n';
    } else {
      bytes += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
      i += 2;
    }
  }
  return bytes;
}

TEST(ReaderCorpus, EveryInputKeepsThePromises) {
  for (const auto& [name, read] : kReaders) {
    std::ifstream corpus(kCorpus / concat(name, ".txt"));
    int inputs = 0;
    for (std::string line; std::getline(corpus, line); ++inputs) {
      SCOPED_TRACE(concat(name, ": ", line));
      const std::size_t tab = line.find('\t');
      ASSERT_NE(tab, line.npos);
      const std::string bytes = bytes_of(std::string_view(line).substr(tab + 1));
      read(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    }
    EXPECT_GE(inputs, 5) << name;
  }
}

TEST(ReaderCorpus, EveryReaderHasOne) {
  for (const auto& entry : fs::directory_iterator(kCorpus))
    EXPECT_TRUE(kReaders.contains(entry.path().stem())) << entry.path();
}

TEST(ReaderCorpus, LinesAreBytes) { EXPECT_EQ(bytes_of("a\\x5c\\n\\x00b"), std::string("a\\\n\0b", 5)); }

}  // namespace
}  // namespace miniqat::corpus_test
