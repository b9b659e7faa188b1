#include "exporters/onnx/parameters.h"

#include <algorithm>
#include <span>

#include "core/graph/source_ops.h"
#include "core/tensors/tensor.h"
#include "core/text/error.h"

namespace miniqat::exporters {
namespace {

Tensor value_of(const Node& node, const NamedTensors& variables) {
  if (const auto* constant = node.as<Constant>()) {
    Tensor tensor(node.output().shape());
    for (std::int64_t i = 0; i < tensor.elements(); ++i)
      tensor.data<float>()[i] =
          static_cast<float>(constant->value[constant->value.size() == 1 ? 0 : static_cast<std::size_t>(i)]);
    return tensor;
  }
  const auto found = variables.find(node.name());
  if (found == variables.end()) fail("onnx-float: ", describe(node), " has no value");
  if (found->second.shape() != node.output().shape())
    fail("onnx-float: ", describe(node), " is ", node.output().shape(), ", its value ", found->second.shape());
  return found->second;
}

/// Axis i of the result is axis axes[i] of `tensor`.
std::vector<float> transposed(const Tensor& tensor, const std::vector<std::int64_t>& axes) {
  const std::vector<std::int64_t> extents = tensor.shape().to_vector();
  const std::size_t rank = extents.size();
  std::vector<std::int64_t> strides(rank, 1);
  for (std::size_t axis = rank; axis-- > 1;) strides[axis - 1] = strides[axis] * extents[axis];
  std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    auto rest = static_cast<std::int64_t>(i);
    std::int64_t place = 0;
    for (std::size_t axis = rank; axis-- > 0;) {
      const auto from = static_cast<std::size_t>(axes[axis]);
      place += rest % extents[from] * strides[from];
      rest /= extents[from];
    }
    values[i] = tensor.data<float>()[place];
  }
  return values;
}

/// A parameter's name in the file: "conv1.gamma" for "conv1/BatchNorm/gamma", whose last two parts the importer makes.
std::string onnx_name(std::string name) {
  const std::string norm = "/BatchNorm/";
  if (const std::size_t place = name.rfind(norm); place != std::string::npos && place > 0)
    name.replace(place, norm.size(), "/");
  std::ranges::replace(name, '/', '.');
  return name;
}

}  // namespace

bool is_parameter(const Output& tensor) {
  return tensor.node->as<Variable>() != nullptr || tensor.node->as<Constant>() != nullptr;
}

std::string Parameters::written(const Output& tensor, const std::string& form, const std::vector<std::int64_t>& axes,
                                std::vector<std::int64_t> extents) {
  std::string& name = names_[{tensor.node, form}];
  if (!name.empty()) return name;
  const Tensor value = value_of(*tensor.node, variables_);
  const std::vector<std::int64_t> ours = value.shape().to_vector();
  if (extents.empty()) {
    for (const std::int64_t axis : axes) extents.push_back(ours[static_cast<std::size_t>(axis)]);
    if (axes.empty()) extents = ours;
  }
  const std::vector<float> turned = axes.empty() ? std::vector<float>() : transposed(value, axes);
  const std::span<const float> numbers = axes.empty() ? value.values<float>() : std::span<const float>(turned);
  name = graph_.constant(onnx_name(tensor.node->name()), pb::FLOAT, extents, OnnxGraph::bytes_of(numbers));
  return name;
}

std::string Parameters::depthwise_filter(const Output& tensor) {
  const Shape& shape = tensor.shape();
  return written(tensor, "depthwise", {2, 3, 0, 1}, {shape[2] * shape[3], 1, shape[0], shape[1]});
}

std::string Parameters::operand(const Output& tensor, int rank) {
  const Shape& shape = tensor.shape();
  if (rank != 4 || shape.elements() == 1) return plain(tensor);
  // Filled up from the left, as broadcasting does.
  std::vector<std::int64_t> whole(4 - static_cast<std::size_t>(shape.rank()), 1);
  whole.insert(whole.end(), shape.extents().begin(), shape.extents().end());
  std::vector<std::int64_t> axes;
  if (shape.rank() == 4) axes = kToChannelsFirst;
  // Without the batch, [h, w, c]; [w, c] and [c] have their axes in order once c comes before w.
  if (shape.rank() == 3) axes = {2, 0, 1};
  if (shape.rank() == 2) axes = {1, 0};
  return written(tensor, "operand", axes, {whole[0], whole[3], whole[1], whole[2]});
}

}  // namespace miniqat::exporters
