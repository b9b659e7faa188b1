#include "training/run/variables_hash.h"

#include <cstdint>
#include <cstdio>

#include "core/files.h"

namespace miniqat::training {

std::string variables_hash(const std::filesystem::path& checkpoint) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : read_large_file(checkpoint)) {
    hash ^= static_cast<unsigned char>(byte);
    hash *= 0x100000001b3;
  }
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return digits;
}

}  // namespace miniqat::training
