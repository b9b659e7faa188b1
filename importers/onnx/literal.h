#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "core/tensor.h"
#include "formats/onnx/onnx.pb.h"

namespace miniqat::importers {

// Not for users of the library.

/// The extent of a batch whose size a file leaves open, where it stands among integers ("the shape of x").
inline constexpr std::int64_t kOpenBatch = INT64_MIN;

/// A tensor whose numbers are known while a model is read, in ONNX's layout: a parameter, or what is computed of
/// shapes.
struct Literal {
  std::vector<std::int64_t> extents = {};
  /// Floats of any width as float32, integers and bools as int64; row-major.
  std::variant<std::vector<float>, std::vector<std::int64_t>> values = {};

  bool is_real() const { return std::holds_alternative<std::vector<float>>(values); }
  std::int64_t elements() const;
  const std::vector<float>& reals() const { return std::get<std::vector<float>>(values); }
  const std::vector<std::int64_t>& integers() const { return std::get<std::vector<std::int64_t>>(values); }
};

/// "[64,3,7,7]"; "batch" for kOpenBatch.
std::string extents_text(const std::vector<std::int64_t>& extents);

/// The product; throws Error for negative extents and more elements than a tensor may have.
std::int64_t count_elements(const std::vector<std::int64_t>& extents);

/// Reads a constant of a file; external data lies in `folder`. Throws Error naming the constant when extents, type and
/// bytes do not fit, the type is none of float, double, float16, int8..64, uint8..32 and bool, or its file is not in
/// the folder.
Literal read_literal(const pb::Constant& constant, const std::filesystem::path& folder);

/// As read from a file with the axes in another order: axis i of the result is axis axes[i] of `literal`.
Literal transposed(const Literal& literal, const std::vector<std::int64_t>& axes);

}  // namespace miniqat::importers
