#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "core/text/error.h"

// What the fuzzers of readers share. Each is a file with a MINIQAT_READER: bytes in, and either the reader
// refuses them with an Error in one line, or what it read can be written and read back to the same. Anything else ends
// the process. scripts/fuzz-readers runs them; tests/fuzz/readers/corpus_test.cpp replays the corpus in the ordinary
// tests.

/// The head of a reader's function, before its arguments: in a fuzzer of its own the one that libFuzzer calls,
/// fuzz_<reader> in the program that replays the corpora of all.
#ifdef MINIQAT_LIBFUZZER
#define MINIQAT_READER(reader) extern "C" int LLVMFuzzerTestOneInput
#else
#define MINIQAT_READER(reader) extern "C" int fuzz_##reader
#endif

namespace miniqat::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Ends the process, as a sanitizer would, when a promise of the reader does not hold.
inline void require(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

/// Runs `read`; false when it throws Error, whose text must be one line of limited length.
template <class Read>
bool accepts(const Read& read) {
  try {
    read();
    return true;
  } catch (const Error& error) {
    const std::string_view text = error.what();
    require(!text.empty() && text.find('\n') == std::string_view::npos, "an error is one line");
    require(text.size() < 8000, "an error is short");
    return false;
  }
}

/// A directory in memory that goes with the process.
class Place {
 public:
  Place() {
    std::string pattern =
        std::filesystem::is_directory("/dev/shm") ? "/dev/shm/miniqat-fuzz-XXXXXX" : "/tmp/miniqat-fuzz-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  ~Place() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(const std::string& name, std::string_view bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace miniqat::fuzz
