#include "importers/onnx/ops.h"

#include <algorithm>

#include "core/suggest.h"

namespace miniqat::importers {
namespace {

constexpr ImportedOp kOps[] = {
    {"Add", import_arithmetic},
    {"AveragePool", import_average_pool},
    {"BatchNormalization", import_batch_normalization},
    {"Cast", import_cast},
    {"Clip", import_clip},
    {"Concat", import_concat},
    {"Constant", import_constant},
    {"ConstantOfShape", import_constant_of_shape},
    {"Conv", import_conv},
    {"Div", import_arithmetic},
    {"Dropout", import_dropout},
    {"Flatten", import_flatten},
    {"Gather", import_gather},
    {"Gemm", import_gemm},
    {"GlobalAveragePool", import_global_pool},
    {"GlobalMaxPool", import_global_pool},
    {"HardSigmoid", import_hard_sigmoid},
    {"HardSwish", import_function},
    {"Identity", import_identity},
    {"LeakyRelu", import_leaky_relu},
    {"LogSoftmax", import_softmax},
    {"MatMul", import_matmul},
    {"MaxPool", import_max_pool},
    {"Mul", import_arithmetic},
    {"Pad", import_pad},
    {"ReduceMax", import_reduce},
    {"ReduceMean", import_reduce},
    {"Relu", import_function},
    {"Reshape", import_reshape},
    {"Shape", import_shape},
    {"Sigmoid", import_function},
    {"Slice", import_slice},
    {"Softmax", import_softmax},
    {"Split", import_split},
    {"Squeeze", import_squeeze},
    {"Sub", import_arithmetic},
    {"Transpose", import_transpose},
    {"Unsqueeze", import_unsqueeze},
};

}  // namespace

std::span<const ImportedOp> imported_op_table() { return kOps; }

void refuse_quantized(const OnnxNode& node) {
  const std::string& type = node.type();
  if (type.ends_with("QuantizeLinear") || type == "DequantizeLinear" || type.starts_with("QLinear") ||
      type.ends_with("Integer"))
    node.refuse("is of a model that is quantized already; import the float model that it was made of");
}

void refuse_op(const OnnxNode& node) {
  if (node.type() == "ConvTranspose")
    node.refuse(
        "is a transposed convolution, which miniqat does not have; networks that enlarge images are not for it");
  node.refuse("is an op that miniqat does not import; it imports ", joined(imported_ops()),
              ". Export the network without it, or write that part anew");
}

std::vector<std::string> imported_ops() {
  std::vector<std::string> types;
  for (const ImportedOp& op : kOps) types.emplace_back(op.type);
  return types;
}

}  // namespace miniqat::importers
