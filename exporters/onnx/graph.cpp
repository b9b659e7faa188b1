#include "exporters/onnx/graph.h"

#include <algorithm>
#include <bit>
#include <charconv>

#include "core/text/error.h"
#include "core/text/suggest.h"
#include "exporters/onnx/onnx.h"

namespace miniqat::exporters {
namespace {

static_assert(std::endian::native == std::endian::little, "constants are written as they lie in memory");

/// The version of the file's messages that the first release of ONNX with this opset has. A runtime reads no file of a
/// later version than its own.
constexpr std::int64_t ir_version_of(std::int64_t opset) {
  return opset < 15 ? 7 : opset < 19 ? 8 : opset < 21 ? 9 : 10;
}

void describe(pb::Value& value, const std::string& name, pb::ElementType type, std::span<const std::int64_t> extents) {
  value.set_name(name);
  pb::TensorType& tensor = *value.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  tensor.mutable_shape()->add_dim()->set_dim_param("batch");
  for (const std::int64_t extent : extents) tensor.mutable_shape()->add_dim()->set_dim_value(extent);
}

}  // namespace

OnnxGraph::OnnxGraph(const std::string& name, std::optional<std::int64_t> opset) : asked_(opset) {
  if (opset && (*opset < kOldestOpset || *opset > kNewestOpset))
    fail("opset ", *opset, " cannot be written; ", kOldestOpset, " to ", kNewestOpset, " can");
  model_.add_opset_import();
  set_opset(opset.value_or(kOldestOpset));
  model_.set_producer_name("miniqat");
  model_.mutable_graph()->set_name(name);
}

void OnnxGraph::set_opset(std::int64_t opset) {
  model_.set_ir_version(ir_version_of(opset));
  model_.mutable_opset_import(0)->set_version(opset);
}

void OnnxGraph::require(std::int64_t opset, const std::string& what) {
  if (!may_hold(opset)) fail(what, " takes opset ", opset, ", and opset ", *asked_, " is asked for");
  set_opset(std::max(opset, this->opset()));
}

std::string OnnxGraph::unique(const std::string& wish) {
  std::string name = wish;
  for (int i = 1; name.empty() || !names_.insert(name).second; ++i) name = concat(wish, "_", i);
  return name;
}

std::string OnnxGraph::input(const std::string& wish, pb::ElementType type, std::span<const std::int64_t> extents) {
  std::string name = unique(wish);
  describe(*model_.mutable_graph()->add_input(), name, type, extents);
  return name;
}

void OnnxGraph::output(const std::string& name, pb::ElementType type, std::span<const std::int64_t> extents) {
  describe(*model_.mutable_graph()->add_output(), name, type, extents);
}

std::string OnnxGraph::constant(const std::string& wish, pb::ElementType type, std::span<const std::int64_t> extents,
                                std::string bytes) {
  pb::Constant& constant = *model_.mutable_graph()->add_initializer();
  constant.set_name(unique(wish));
  constant.set_data_type(type);
  for (const std::int64_t extent : extents) constant.add_dims(extent);
  constant.set_raw_data(std::move(bytes));
  return constant.name();
}

std::string OnnxGraph::node(const std::string& type, const std::vector<std::string>& inputs, const std::string& wish,
                            const std::vector<OnnxAttribute>& attributes) {
  pb::Node& node = *model_.mutable_graph()->add_node();
  std::string output = unique(wish);
  node.set_op_type(type);
  node.set_name(output);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(output);
  for (const auto& [name, value] : attributes) {
    pb::Attribute& attribute = *node.add_attribute();
    attribute.set_name(name);
    if (const auto* number = std::get_if<std::int64_t>(&value)) {
      attribute.set_type(pb::Attribute::INT);
      attribute.set_i(*number);
    } else if (const auto* real = std::get_if<float>(&value)) {
      attribute.set_type(pb::Attribute::FLOAT);
      attribute.set_f(*real);
    } else {
      attribute.set_type(pb::Attribute::INTS);
      for (const std::int64_t i : std::get<std::vector<std::int64_t>>(value)) attribute.add_ints(i);
    }
  }
  return output;
}

void OnnxGraph::property(const std::string& key, const std::string& value) {
  pb::Property& property = *model_.add_metadata_props();
  property.set_key(key);
  property.set_value(value);
}

void OnnxGraph::grid(const std::string& tensor, const integer::Grid& grid) {
  char buffer[32];
  property(tensor + "_scale", {buffer, std::to_chars(buffer, buffer + sizeof buffer, grid.scale).ptr});
  property(tensor + "_zero_point", std::to_string(grid.zero_point));
}

void OnnxGraph::class_names(const std::vector<std::string>& names) {
  if (!names.empty()) property("class_names", joined(names, "\n"));
}

std::int64_t onnx_axis(int rank, std::int64_t axis) {
  if (rank != 4 || axis == 0) return axis;
  return axis == 3 ? 1 : axis + 1;
}

std::int64_t unread(const WindowAxis& axis) { return axis.input - 1 - axis.source(axis.output - 1, axis.window - 1); }

std::vector<OnnxAttribute> window_attributes(const Window2d& window) {
  std::vector<std::int64_t> kernel, strides, before, after;
  for (const WindowAxis& axis : {window.rows, window.columns}) {
    kernel.push_back(axis.window);
    strides.push_back(axis.stride);
    before.push_back(axis.pad_before);
    after.push_back(std::max<std::int64_t>(-unread(axis), 0));
  }
  return {
      {"kernel_shape", kernel}, {"strides", strides}, {"pads", std::vector{before[0], before[1], after[0], after[1]}}};
}

std::vector<OnnxAttribute> dilated_window_attributes(const Window2d& window) {
  std::vector<OnnxAttribute> attributes = window_attributes(window);
  attributes.emplace_back("dilations", std::vector{window.rows.dilation, window.columns.dilation});
  return attributes;
}

}  // namespace miniqat::exporters
