#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "exporters/onnx/opsets.h"
#include "integer/model.h"

namespace miniqat::exporters {

struct OnnxOptions {
  /// Weights of 4 bits and fewer as INT4 or UINT4, two a byte, instead of their values in 8 bits.
  bool packed_4_bits = true;
  /// From kOldestOpset to kNewestOpset. Without it the lowest that the content needs: 21 for INT4 and UINT4, 14
  /// for a HardSwish, 13 otherwise.
  std::optional<std::int64_t> opset = {};
};

/// The bytes of an ONNX model in QDQ form: DequantizeLinear and QuantizeLinear around each operator that
/// computes, int32 biases, int8 or uint8 weights per tensor or per channel. Images go in as uint8 integers of the
/// input's grid, [batch, h, w, c], and the output comes out as float32, [batch, classes]. The batch size is free.
/// docs/exports-onnx.md says what runtimes make of it. Throws what Model::check() throws, and Error naming the
/// operation for what the format, or the opset asked for, cannot hold.
std::string onnx(const integer::Model& model, const OnnxOptions& options = {});

}  // namespace miniqat::exporters
