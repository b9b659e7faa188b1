#pragma once

#include <span>
#include <string>
#include <vector>

#include "importers/onnx/translation.h"

namespace miniqat::importers {

// Not for users of the library: the table of the ops that are imported. A new one is a function in one of ops_*.cpp,
// its line below and its row in ops.cpp.

/// In alphabetical order.
std::span<const ImportedOp> imported_op_table();
std::vector<std::string> imported_types();

/// Throws Error for an op of quantized models, of any domain.
void refuse_quantized(const OnnxNode& node);

/// Throws Error for the first node of an operator that is not ONNX's own or not in the table. It names all such types
/// of the model, and says what may be done about them.
void require_imported(const pb::Graph& graph, std::int64_t opset);

// ops_layers.cpp
void import_batch_normalization(Translation& t, const OnnxNode& node);
void import_conv(Translation& t, const OnnxNode& node);
void import_gemm(Translation& t, const OnnxNode& node);
void import_matmul(Translation& t, const OnnxNode& node);
// ops_pools.cpp
void import_average_pool(Translation& t, const OnnxNode& node);
void import_global_pool(Translation& t, const OnnxNode& node);
void import_max_pool(Translation& t, const OnnxNode& node);
void import_pad(Translation& t, const OnnxNode& node);
void import_reduce(Translation& t, const OnnxNode& node);
// ops_pointwise.cpp
void import_arithmetic(Translation& t, const OnnxNode& node);
void import_clip(Translation& t, const OnnxNode& node);
void import_dropout(Translation& t, const OnnxNode& node);
void import_function(Translation& t, const OnnxNode& node);
void import_hard_sigmoid(Translation& t, const OnnxNode& node);
void import_identity(Translation& t, const OnnxNode& node);
void import_leaky_relu(Translation& t, const OnnxNode& node);
void import_prelu(Translation& t, const OnnxNode& node);
void import_softmax(Translation& t, const OnnxNode& node);
// ops_shape.cpp
void import_concat(Translation& t, const OnnxNode& node);
void import_flatten(Translation& t, const OnnxNode& node);
void import_reshape(Translation& t, const OnnxNode& node);
void import_squeeze(Translation& t, const OnnxNode& node);
void import_transpose(Translation& t, const OnnxNode& node);
void import_unsqueeze(Translation& t, const OnnxNode& node);
// ops_parts.cpp
void import_slice(Translation& t, const OnnxNode& node);
void import_split(Translation& t, const OnnxNode& node);
// ops_known.cpp: of numbers that are known while the model is read.
void import_cast(Translation& t, const OnnxNode& node);
void import_constant(Translation& t, const OnnxNode& node);
void import_constant_of_shape(Translation& t, const OnnxNode& node);
void import_gather(Translation& t, const OnnxNode& node);
void import_shape(Translation& t, const OnnxNode& node);
/// Add, Div, Mul and Sub of integers.
Literal known_arithmetic(const OnnxNode& node, const Literal& a, const Literal& b);

}  // namespace miniqat::importers
