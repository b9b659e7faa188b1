#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace miniqat::testing {

inline void put_bytes(std::string& bytes, std::uint32_t value, int count) {
  for (int i = 0; i < count; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
}

/// A WAV file of 16 bits (the RIFF specification of 1991), with the samples of each channel in turns.
inline std::string wav(const std::vector<std::int16_t>& samples, std::uint32_t rate, std::uint32_t channels = 1) {
  const auto size = static_cast<std::uint32_t>(2 * samples.size());
  std::string bytes = "RIFF";
  put_bytes(bytes, 36 + size, 4);
  bytes += "WAVEfmt ";
  put_bytes(bytes, 16, 4), put_bytes(bytes, 1, 2), put_bytes(bytes, channels, 2), put_bytes(bytes, rate, 4),
      put_bytes(bytes, rate * channels * 2, 4);
  put_bytes(bytes, channels * 2, 2), put_bytes(bytes, 16, 2);
  bytes += "data";
  put_bytes(bytes, size, 4);
  for (const std::int16_t sample : samples) put_bytes(bytes, static_cast<std::uint16_t>(sample), 2);
  return bytes;
}

/// All samples are equal.
inline std::string tone(std::int16_t height, std::size_t count = 80, std::uint32_t rate = 8000) {
  return wav(std::vector<std::int16_t>(count, height), rate);
}

}  // namespace miniqat::testing
