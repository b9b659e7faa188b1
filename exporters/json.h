#pragma once

#include <string>

#include "integer/model.h"

namespace miniqat::exporters {

/// Everything that the model holds as JSON text: integers as plain (unpacked) lists, scales, zero points, multipliers
/// and clamps per operation, for those who build hardware. docs/integer-model.md describes it.
std::string json(const integer::Model& model);

}  // namespace miniqat::exporters
