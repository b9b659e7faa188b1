#pragma once

#include <string>

#include "integer/model.h"

namespace miniqat::exporters {

struct OnnxOptions {
  /// Weights of 4 bits and fewer as INT4 or UINT4, two a byte, instead of their values in 8 bits.
  bool packed_4_bits = true;
};

/// The bytes of an ONNX model (opset 21) in QDQ form: DequantizeLinear and QuantizeLinear around each operator that
/// computes, int32 biases, int8 or uint8 weights per tensor or per channel. Images go in as uint8 integers of the
/// input's grid, [batch, h, w, c], and the output comes out as float32, [batch, classes]. The batch size is free.
/// docs/exports-onnx.md says what runtimes make of it. Throws what Model::check() throws, and Error naming the
/// operation for what the format cannot hold.
std::string onnx(const integer::Model& model, const OnnxOptions& options = {});

}  // namespace miniqat::exporters
