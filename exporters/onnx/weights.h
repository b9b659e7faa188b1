#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/onnx/onnx.pb.h"
#include "integer/model.h"

namespace miniqat::exporters {

// Not for users of the library: how exporters/onnx/onnx.cpp stores a layer's weights.

/// A layer's integers with real = unit scale * (integer - zero point); 4-bit ones are to be taken 2^weight_shift()
/// times.
struct OnnxWeights {
  pb::ElementType type = pb::UINT8;
  /// [out, in / group, kh, kw] of convolutions, [in, out] of fully connected layers.
  std::vector<std::int64_t> extents = {};
  /// Row-major; two integers of 4 bits a byte, the first in the low half.
  std::string bytes = {};
  /// The zero points, integers of 8 bits, one for each weight scale.
  std::string zero_points = {};

  bool packed() const { return type == pb::UINT4 || type == pb::INT4; }
  /// The type of 8 bits that holds the same values.
  pb::ElementType unpacked() const { return type == pb::UINT4 ? pb::UINT8 : type == pb::INT4 ? pb::INT8 : type; }
  /// Where the output channels are.
  std::int64_t channel_axis() const { return extents.size() == 2 ? 1 : 0; }
};

/// Weights of 4 bits and fewer in 4 bits if `packed_4_bits`, others in 8. Signed and without zero point where all fit,
/// for which runtimes have their fastest kernels; with their zero points otherwise.
OnnxWeights onnx_weights(const integer::Layer& layer, bool packed_4_bits);

}  // namespace miniqat::exporters
