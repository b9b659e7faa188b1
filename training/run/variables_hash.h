#pragma once

#include <filesystem>
#include <string>

namespace miniqat::training {

/// 16 hexadecimal digits that change with any byte of a checkpoint file: FNV-1a of 64 bits. Throws Error for a file
/// that cannot be read.
std::string variables_hash(const std::filesystem::path& checkpoint);

}  // namespace miniqat::training
