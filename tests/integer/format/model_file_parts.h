#pragma once

#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "integer/format/model_file.h"
#include "tests/errors.h"
#include "tests/integer/random_model.h"

namespace miniqat::testing {

/// A file taken apart, so that a test can spoil a part and have the rest agree with it.
struct ModelFileParts {
  std::string header;
  std::string blob;

  explicit ModelFileParts(const std::string& file) {
    std::uint32_t header_bytes = 0;
    std::memcpy(&header_bytes, file.data() + 12, 4);
    header = file.substr(24, header_bytes);
    blob = file.substr(24 + header_bytes, file.size() - 28 - header_bytes);
  }

  /// With lengths and checksum that fit.
  std::string file() const {
    std::string bytes = std::string("miniqat\n\2\0\0\0", 12);
    const auto append = [&bytes](const auto number) {
      bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
    };
    append(static_cast<std::uint32_t>(header.size()));
    append(std::uint64_t{blob.size()});
    bytes += header + blob;
    append(static_cast<std::uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size())));
    return bytes;
  }
};

/// What is wrong with a file's bytes, read as some/model.miniqat; empty when nothing is. Every error is one short line
/// that begins with the source.
inline std::string complaint_about(const std::string& bytes) {
  const std::string text = error_of([&] { integer::from_bytes(bytes, "some/model.miniqat"); });
  if (text.empty()) return text;
  EXPECT_TRUE(mentions(text, {}));
  EXPECT_TRUE(text.starts_with("some/model.miniqat: ")) << text;
  EXPECT_LT(text.size(), 600u) << text;
  return text;
}

/// A kind of everything, in about two thousand bytes.
inline integer::Model small_model(std::uint64_t seed = 7) {
  RandomModel net(seed, {3, 4, 2});
  net.conv2d(2);
  const int left = net.rescale();
  net.concat(left, net.add(left, left));
  net.average_pool();
  net.lookup();
  net.fully_connected(3);
  return net.finish();
}

}  // namespace miniqat::testing
