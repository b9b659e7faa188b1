#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "integer/model.h"

namespace miniqat::integer {

/// A model.miniqat file: see docs/integer-model.md for the layout. Little-endian.
std::string to_bytes(const Model& model);
/// Throws Error that names `source` and what is wrong: wrong magic or version, cut short, a checksum that does not fit,
/// JSON that is malformed, unknown or missing keys, sizes that do not match, anything that Model::check() refuses.
/// Nothing is allocated before its size was checked against the bytes that are there.
Model from_bytes(std::string_view bytes, const std::string& source);

/// from_bytes() of a file. Throws Error naming path and reason.
Model read_model(const std::filesystem::path& path);

}  // namespace miniqat::integer
