#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "integer/model.h"

namespace miniqat::exporters {

/// Where the tensors of a model lie in generated C.
struct CMemory {
  /// For each tensor a C expression that points at it: "input", "output" or "arena + 128". The output of a Reshape lies
  /// in the place of its input, unless it is the model's output.
  std::vector<std::string> pointers;
  std::size_t arena_bytes = 0;
};

/// The model must have passed Model::check().
CMemory plan_c_memory(const integer::Model& model);

/// One operation of a model as C.
struct COperation {
  /// Constant arrays and structs, named after the operation's number from 1 ("weights_3", "layer_3").
  std::string data;
  /// Statements that run it.
  std::string calls;
  /// What they need of c_runtime() (exporters/c/runtime.h).
  std::set<std::string_view> kernels;
  /// The elements that it needs in pool_sums[] and filter[].
  std::int64_t sums = 0;
  std::int64_t filter = 0;
  /// Bytes of its weights, and of its other constants where int and pointers have 32 bits.
  std::int64_t weight_bytes = 0;
  std::int64_t constant_bytes = 0;
};

/// `weights_section` is a macro that stands before arrays of weights. The model must have passed Model::check(). Throws
/// Error naming the operation for weights that are too many.
COperation c_operation(const integer::Model& model, std::size_t index, const CMemory& memory,
                       const std::string& weights_section);

}  // namespace miniqat::exporters
