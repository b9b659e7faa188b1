#include "training/run/variables_hash.h"

#include <cstdint>

#include "core/files/files.h"
#include "core/text/classic.h"
#include "importers/onnx/import.h"

namespace miniqat::training {

std::string variables_hash(const std::filesystem::path& checkpoint) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : read_large_file(checkpoint)) {
    hash ^= static_cast<unsigned char>(byte);
    hash *= 0x100000001b3;
  }
  char digits[17];
  classic_snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return digits;
}

std::string model_hash(const std::filesystem::path& model) {
  std::string text = variables_hash(model);
  for (const std::filesystem::path& file : importers::external_files(model)) text += "-" + variables_hash(file);
  return text;
}

}  // namespace miniqat::training
