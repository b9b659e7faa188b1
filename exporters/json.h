#pragma once

#include <optional>
#include <string>

#include "integer/model.h"

namespace miniqat::exporters {

/// Everything that the model holds as JSON text: integers as plain (unpacked) lists, scales, zero points, multipliers
/// and clamps per operation, for those who build hardware. docs/integer-model.md describes it. If `bytes`, the grid of
/// the pictures' bytes, is not the input's, the list "input_from_byte" maps each of the 256 to it. UTF-8, in lines of
/// at most 120 characters where its texts allow, the last with its line feed; the same model gives the same text.
/// Throws what Model::check() throws, and Error when the model's name is not valid UTF-8.
std::string json(const integer::Model& model, const std::optional<integer::Grid>& bytes = {});

}  // namespace miniqat::exporters
