#include "importers/onnx/ops.h"

#include <algorithm>

#include "core/text/quote.h"
#include "core/text/suggest.h"

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
    {"PRelu", import_prelu},
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

/// `others` are further types that the model has and the table has not.
[[noreturn]] void refuse_op(const OnnxNode& node, const std::vector<std::string>& others) {
  const std::string more = others.empty() ? "" : concat("; the same goes for the model's ", joined(others));
  if (node.type() == "ConvTranspose")
    node.refuse("is a transposed convolution, which miniqat does not have", more,
                "; networks that enlarge images are not for it");
  node.refuse("is an op that miniqat does not import", more, "; it imports ", joined(imported_types()),
              ". Export the network without it, or write that part anew");
}

}  // namespace

std::span<const ImportedOp> imported_op_table() { return kOps; }

std::vector<std::string> imported_types() {
  std::vector<std::string> types;
  for (const ImportedOp& op : kOps) types.emplace_back(op.type);
  return types;
}

void refuse_quantized(const OnnxNode& node) {
  const std::string& type = node.type();
  if (type.ends_with("QuantizeLinear") || type == "DequantizeLinear" || type.starts_with("QLinear") ||
      type.ends_with("Integer"))
    node.refuse("is of a model that is quantized already; import the float model that it was made of");
}

void require_imported(const pb::Graph& graph, std::int64_t opset) {
  std::vector<OnnxNode> unknown;
  std::vector<std::string> others;
  for (const pb::Node& proto : graph.node()) {
    const OnnxNode node(proto, opset);
    if (!proto.domain().empty() && proto.domain() != "ai.onnx")
      node.refuse("is of the operators ", quote(proto.domain()), "; only ONNX's own are imported");
    if (std::ranges::find(kOps, node.type(), &ImportedOp::type) != std::end(kOps)) continue;
    unknown.push_back(node);
    const std::string type = printable(shortened(node.type()));
    if (node.type() != unknown[0].type() && std::ranges::find(others, type) == others.end()) others.push_back(type);
  }
  if (!unknown.empty()) refuse_op(unknown[0], others);
}

}  // namespace miniqat::importers
