#pragma once

#include <string>

#include "integer/model.h"

namespace miniqat::exporters {

struct OnnxOptions {
  /// Weights of 4 bits as INT4 or UINT4 (opset 21) instead of their values in 8 bits.
  bool packed_4_bits = true;
};

/// The bytes of an ONNX model in QDQ form: QuantizeLinear and DequantizeLinear around each operator, int32 biases,
/// weights per tensor or per channel. Images go in as uint8 integers of the input's grid, [batch, h, w, c], and logits
/// come out as float32 [batch, classes]. The batch size is free. Throws Error naming the operation for what the format
/// cannot hold.
std::string onnx(const integer::Model& model, const OnnxOptions& options = {});

}  // namespace miniqat::exporters
