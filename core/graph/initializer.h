#pragma once

#include <cstdint>

#include "core/graph/attributes.h"
#include "core/tensors/tensor.h"

namespace miniqat {

/// How a variable starts. fan_in and fan_out of a filter [kh, kw, in, out] are kh*kw*in and kh*kw*out, of a matrix
/// [in, out] its extents.
struct Initializer {
  enum class Kind {
    /// Glorot uniform for rank 2 and above, zeros below.
    kDefault,
    kConstant,
    /// stddev * a normal within two standard deviations, plus mean.
    kTruncatedNormal,
    /// Uniform in +-sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010, eq. 16).
    kGlorotUniform,
    /// Truncated normal with variance 2 / fan_in after truncation (He et al. 2015, eq. 10).
    kHeNormal,
  };

  Kind kind = Kind::kDefault;
  double value = 0;
  double mean = 0;
  double stddev = 0.05;

  static Initializer constant(double value) { return {.kind = Kind::kConstant, .value = value}; }
  static Initializer truncated_normal(double stddev) { return {.kind = Kind::kTruncatedNormal, .stddev = stddev}; }
  static Initializer glorot_uniform() { return {.kind = Kind::kGlorotUniform}; }
  static Initializer he_normal() { return {.kind = Kind::kHeNormal}; }
  /// he_normal for a variable whose shape does not tell its fan_in, as a truncated_normal.
  static Initializer he_normal(double fan_in);

  /// As JSON {"type": "truncated_normal", "stddev": 0.09}; "glorot_uniform", "he_normal", {"type": "constant", "value":
  /// 0}.
  void visit(AttributeVisitor& visitor);
  /// Throws Error when a number is not finite or stddev is negative.
  void check() const;
  /// Fills a float32 or float64 tensor; the same key gives the same numbers (float32 ones, widened) for either.
  void fill(Tensor& tensor, std::uint64_t key) const;
};

}  // namespace miniqat
