#pragma once

#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "core/engine/session.h"
#include "formats/onnx/onnx.pb.h"
#include "importers/onnx/import.h"
#include "tests/errors.h"
#include "tests/temp_dir.h"

namespace miniqat::importers::import_test {

/// An ONNX model of one chain of nodes from "x", written by hand.
class NodeChain {
 public:
  explicit NodeChain(const std::vector<std::int64_t>& input, std::int64_t opset = 13) {
    model.add_opset_import()->set_version(opset);
    pb::Value& x = *graph().add_input();
    x.set_name("x");
    x.mutable_type()->mutable_tensor_type()->set_elem_type(pb::FLOAT);
    for (const std::int64_t extent : input) {
      pb::Dimension& dimension = *x.mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim();
      extent > 0 ? dimension.set_dim_value(extent) : dimension.set_dim_param("n");
    }
  }

  pb::Graph& graph() { return *model.mutable_graph(); }
  /// Takes the last tensor and `others`.
  pb::Node& add(const std::string& type, const std::vector<std::string>& others = {}) {
    pb::Node& node = *graph().add_node();
    node.set_op_type(type);
    node.set_name("the_" + type);
    node.add_input(last);
    for (const std::string& other : others) node.add_input(other);
    last = "t" + std::to_string(graph().node_size());
    node.add_output(last);
    return node;
  }
  pb::Constant& constant(const std::string& name, const std::vector<std::int64_t>& extents) {
    pb::Constant& constant = *graph().add_initializer();
    constant.set_name(name);
    constant.set_data_type(pb::FLOAT);
    std::int64_t elements = 1;
    for (const std::int64_t extent : extents) constant.add_dims(extent), elements *= extent;
    for (std::int64_t i = 0; i < elements; ++i) constant.add_float_data(static_cast<float>(i % 7) - 3);
    return constant;
  }
  /// A constant of one float, without axes.
  void number(const std::string& name, float value) { constant(name, {}).set_float_data(0, value); }
  void integers(const std::string& name, const std::vector<std::int64_t>& values) {
    pb::Constant& constant = *graph().add_initializer();
    constant.set_name(name);
    constant.set_data_type(pb::INT64);
    constant.add_dims(static_cast<std::int64_t>(values.size()));
    for (const std::int64_t value : values) constant.add_int64_data(value);
  }
  void write() {
    graph().clear_output();
    graph().add_output()->set_name(last);
    std::ofstream(path(), std::ios::binary) << model.SerializeAsString();
  }
  ImportedModel import(std::int64_t batch = 0) {
    write();
    return import_onnx(path(), {.batch_size = batch});
  }
  std::filesystem::path path() const { return directory.path() / "net.onnx"; }
  std::string refusal() {
    return testing::error_of([&] { import(); });
  }

  pb::Model model;
  std::string last = "x";
  testing::TempDir directory;
};

inline void set_ints(pb::Node& node, const std::string& name, const std::vector<std::int64_t>& values) {
  pb::Attribute& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(pb::Attribute::INTS);
  for (const std::int64_t value : values) attribute.add_ints(value);
}

inline void set_int(pb::Node& node, const std::string& name, std::int64_t value) {
  pb::Attribute& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(pb::Attribute::INT);
  attribute.set_i(value);
}

inline void set_number(pb::Node& node, const std::string& name, float value) {
  pb::Attribute& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(pb::Attribute::FLOAT);
  attribute.set_f(value);
}

inline void set_floats(pb::Node& node, const std::string& name, const std::vector<float>& values) {
  pb::Attribute& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(pb::Attribute::FLOATS);
  for (const float value : values) attribute.add_floats(value);
}

/// 0, 1, 2, ... as our images.
inline Tensor counted_images(const Shape& shape) {
  std::vector<float> numbers(static_cast<std::size_t>(shape.elements()));
  std::iota(numbers.begin(), numbers.end(), 0.0F);
  return Tensor::from<float>(shape, numbers);
}

inline std::vector<float> values_of(const Tensor& tensor) {
  return {tensor.data<float>(), tensor.data<float>() + tensor.elements()};
}

inline Tensor result_of(ImportedModel& model, const Tensor& x) {
  Session session(model.graph);
  session.restore({.tensors = model.variables, .metadata = {}}, Session::Restore::kByName, "import");
  return session.run({.fetches = {model.graph.outputs()[0]}}, {{model.graph.at("x").output(), x}}).fetched[0];
}

}  // namespace miniqat::importers::import_test
