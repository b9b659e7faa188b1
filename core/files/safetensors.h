#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "core/tensors/tensor.h"

namespace miniqat {

using NamedTensors = std::map<std::string, Tensor>;

/// The content of a .safetensors file: tensors and free text, both by name.
struct Safetensors {
  NamedTensors tensors;
  std::map<std::string, std::string> metadata;
};

/// Reads a .safetensors file (8 bytes little-endian header length, JSON header, data). Dtypes F32 F64 I64 I32 I8 U8.
/// Throws Error that names the path and what is wrong (cut short, header too long, overlapping or out-of-range
/// offsets, unknown dtype, sizes that don't match shapes); nothing is allocated before its size was checked against the
/// file's.
Safetensors read_safetensors(const std::filesystem::path& path);

/// Writes atomically: temporary file beside `path`, fsync, rename. On failure throws Error, leaves an existing file
/// untouched and no temporary file behind.
void write_safetensors(const std::filesystem::path& path, const Safetensors& content);

/// Throws Error naming the first tensor (and element) that holds a NaN or an infinity.
void require_finite(const NamedTensors& tensors, const std::string& source);

}  // namespace miniqat
