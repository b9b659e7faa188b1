#pragma once

#include <filesystem>
#include <string>

namespace miniqat::training {

/// 16 hexadecimal digits that change with any byte of a checkpoint file: FNV-1a of 64 bits. Throws Error for a file
/// that cannot be read.
std::string variables_hash(const std::filesystem::path& checkpoint);

/// Changes with any byte of an ONNX model, and of the files in which it keeps weights: the variables_hash() of each,
/// with
/// "-" between them. Throws Error for a file that cannot be read, and what importers::external_files() throws.
std::string model_hash(const std::filesystem::path& model);

}  // namespace miniqat::training
