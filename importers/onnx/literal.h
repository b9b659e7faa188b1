#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/tensors/tensor.h"
#include "formats/onnx/onnx.pb.h"

namespace miniqat::importers {

// Not for users of the library.

/// The extent of a batch whose size a file leaves open, where it stands among integers ("the shape of x").
inline constexpr std::int64_t kOpenBatch = INT64_MIN;

/// Floats of any width as float32, or integers and bools as int64. Copies share them, so that a chain of nodes that
/// only pass a constant on does not take its memory again and again.
class Numbers {
 public:
  using Lists = std::variant<std::vector<float>, std::vector<std::int64_t>>;

  Numbers() : Numbers(std::vector<float>{}) {}
  Numbers(std::vector<float> reals) : lists_(std::make_shared<const Lists>(std::move(reals))) {}
  Numbers(std::vector<std::int64_t> integers) : lists_(std::make_shared<const Lists>(std::move(integers))) {}

  const Lists& lists() const { return *lists_; }

 private:
  std::shared_ptr<const Lists> lists_;
};

/// A tensor whose numbers are known while a model is read, in ONNX's layout: a parameter, or what is computed of
/// shapes.
struct Literal {
  std::vector<std::int64_t> extents = {};
  /// Row-major.
  Numbers values = {};

  bool is_real() const { return std::holds_alternative<std::vector<float>>(values.lists()); }
  std::int64_t elements() const;
  const std::vector<float>& reals() const { return std::get<std::vector<float>>(values.lists()); }
  const std::vector<std::int64_t>& integers() const { return std::get<std::vector<std::int64_t>>(values.lists()); }
};

/// "[64,3,7,7]"; "batch" for kOpenBatch.
std::string extents_text(const std::vector<std::int64_t>& extents);

/// The product; throws Error for negative extents and more elements than a tensor may have.
std::int64_t count_elements(const std::vector<std::int64_t>& extents);

/// Reads a constant of a file; external data lies in `folder`. Throws Error naming the constant when extents, type and
/// bytes do not fit, the type is none of float, double, float16, int8..64, uint8 and bool, its file is not in the
/// folder, or a number is NaN, infinite (one number alone may be: the bound of a Clip) or kOpenBatch.
Literal read_literal(const pb::Constant& constant, const std::filesystem::path& folder);

/// What is wrong with the numbers that a file gives: "holds a number that is NaN", one that is infinite (one number
/// alone may be), kOpenBatch. Empty if nothing is.
std::string flaw_of(const Literal& literal);

/// Whether the constant's numbers lie in another file.
bool is_external(const pb::Constant& constant);

/// The file that holds the constant's numbers. Throws Error for one outside of the model's folder: a model is data, and
/// may not name any file of the machine.
std::filesystem::path external_file(const pb::Constant& constant, const std::filesystem::path& folder);

/// Element (i, j, ...) of the result is number start + i strides[0] + j strides[1] + ... of `literal`; all lie in it.
Literal picked(const Literal& literal, std::vector<std::int64_t> extents, std::int64_t start,
               const std::vector<std::int64_t>& strides);

/// How far apart in memory two neighbours of each axis are, in a row-major tensor that is not empty.
std::vector<std::int64_t> strides_of(const std::vector<std::int64_t>& extents);

/// With the axes in another order: axis i of the result is axis axes[i] of `literal`.
Literal transposed(const Literal& literal, const std::vector<std::int64_t>& axes);

}  // namespace miniqat::importers
