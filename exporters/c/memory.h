#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "integer/model.h"

namespace miniqat::exporters {

/// The places of a model's tensors in generated C.
struct CMemory {
  /// For each tensor a C expression that points at it: "input", "output" or "arena + 128". The output of a Reshape lies
  /// in the place of its input, unless it is the model's output.
  std::vector<std::string> places;
  std::size_t arena_bytes = 0;
};

/// The model must have passed Model::check().
CMemory plan_c_memory(const integer::Model& model);

}  // namespace miniqat::exporters
