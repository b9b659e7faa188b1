// Graph and Output: JSON, ONNX, and the builder.

#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <algorithm>
#include <array>

#include "core/graph/attribute_json.h"
#include "core/graph/graph_json.h"
#include "core/graph/op.h"
#include "core/graph/registry.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/suggest.h"
#include "importers/onnx/import.h"
#include "layers/sequences.h"
#include "python/bindings/handles.h"
#include "python/bindings/values.h"
#include "quantize/quantizers.h"

namespace miniqat::python {
namespace {

using GraphPointer = std::shared_ptr<GraphHandle>;

GraphPointer handle_of(Graph graph) { return std::make_shared<GraphHandle>(std::move(graph)); }

OutputHandle add(const GraphPointer& graph, const std::string& op, const std::string& name, const OutputsLike& inputs,
                 const py::kwargs& attributes) {
  const std::vector<std::string> names = output_names(inputs, graph);
  const nlohmann::ordered_json json = to_json(attributes);
  return {graph, graph->locked([&](Graph& of) {
            const std::shared_ptr<Op> made = make_op(op);
            attributes_from_json(*made, json);
            std::vector<Output> outputs;
            for (const std::string& input : names) outputs.push_back(of.output_at(input));
            return of.add(name, made, std::move(outputs)).output().name();
          })};
}

Padding padding_named(const std::string& name) {
  const auto found = std::ranges::find(kPaddingNames, name);
  if (found == kPaddingNames.end()) fail(wrong_choice("padding", name, {kPaddingNames.begin(), kPaddingNames.end()}));
  return static_cast<Padding>(found - kPaddingNames.begin());
}

using StepPads = std::array<std::int64_t, 2>;

/// A convolution over sequences.
template <auto build>
OutputHandle convolve(const GraphPointer& graph, const std::string& name, const OutputLike& x, const OutputLike& filter,
                      std::int64_t stride, const std::string& padding, std::int64_t dilation, const StepPads& pads) {
  const std::string from = output_name(x, graph), by = output_name(filter, graph);
  const layers::Conv1dAttributes attributes = {
      .stride = stride, .padding = padding_named(padding), .dilation = dilation, .pads = pads};
  return {graph, graph->locked([&](Graph& of) {
            return build(of, name, of.output_at(from), of.output_at(by), attributes).name();
          })};
}

template <auto build>
OutputHandle pool(const GraphPointer& graph, const std::string& name, const OutputLike& x, std::int64_t window,
                  std::int64_t stride, const std::string& padding, const StepPads& pads) {
  const std::string from = output_name(x, graph);
  const layers::Pool1dAttributes attributes = {
      .window = window, .stride = stride, .padding = padding_named(padding), .pads = pads};
  return {graph, graph->locked([&](Graph& of) { return build(of, name, of.output_at(from), attributes).name(); })};
}

OutputHandle output(const GraphPointer& graph, const std::string& name) {
  return {graph, graph->locked([&](Graph& of) { return of.output_at(name).name(); })};
}

std::vector<OutputHandle> outputs(const GraphPointer& graph) {
  std::vector<OutputHandle> handles;
  for (const Output& one : graph->locked([](Graph& of) { return of.outputs(); }))
    handles.push_back({graph, one.name()});
  return handles;
}

void set_outputs(const GraphPointer& graph, const OutputsLike& wanted) {
  const std::vector<std::string> names = output_names(wanted, graph);
  graph->locked([&](Graph& of) {
    std::vector<Output> found;
    for (const std::string& name : names) found.push_back(of.output_at(name));
    of.set_outputs(std::move(found));
  });
}

/// {"name", "op", "inputs", "attributes"} of each node, producers first.
py::list nodes(const GraphPointer& graph) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  graph->locked([&](Graph& of) {
    for (const Node* node : of.topological_order()) {
      nlohmann::ordered_json inputs = nlohmann::ordered_json::array();
      for (const Output& input : node->inputs()) inputs.push_back(input.name());
      all.push_back({{"name", node->name()},
                     {"op", node->type()},
                     {"inputs", std::move(inputs)},
                     {"attributes", all_attributes_to_json(node->op())}});
    }
  });
  return from_json(all);
}

void bind_outputs(py::class_<OutputHandle>& output) {
  output.def_readonly("graph", &OutputHandle::graph, "The graph.")
      .def_readonly("name", &OutputHandle::name, "\"node\" or, for any output but the first, \"node:k\".")
      .def_property_readonly(
          "shape", [](const OutputHandle& self) { return to_tuple(self.spec().shape); },
          "The extents, outermost first.")
      .def_property_readonly(
          "dtype", [](const OutputHandle& self) { return std::string(name_of(self.spec().dtype)); },
          "\"float32\" or \"int32\".")
      .def("__repr__", [](const OutputHandle& self) { return "<miniqat.Output " + self.name + ">"; });
}

void bind_sequences(py::class_<GraphHandle, GraphPointer>& graph) {
  const StepPads none = {0, 0};
  graph
      .def("conv1d", &convolve<layers::conv1d>, py::arg("name"), py::arg("x"), py::arg("filter"), py::arg("stride") = 1,
           py::arg("padding") = "SAME", py::arg("dilation") = 1, py::arg("pads") = none,
           "Adds a convolution over x, [n, steps, channels], and returns [n, steps', channels']. The filter is\n"
           "[k, 1, in, out], pads are the steps before and after with padding \"EXPLICIT\". The node is a Conv2D over\n"
           "images of width 1, between two Reshapes.")
      .def("depthwise_conv1d", &convolve<layers::depthwise_conv1d>, py::arg("name"), py::arg("x"), py::arg("filter"),
           py::arg("stride") = 1, py::arg("padding") = "SAME", py::arg("dilation") = 1, py::arg("pads") = none,
           "conv1d of every channel by itself: the filter is [k, 1, in, multiplier].")
      .def("max_pool1d", &pool<layers::max_pool1d>, py::arg("name"), py::arg("x"), py::arg("window") = 2,
           py::arg("stride") = 0, py::arg("padding") = "VALID", py::arg("pads") = none,
           "Adds a pool over x, [n, steps, channels]: the largest number of each window. Stride 0: as the window.")
      .def("avg_pool1d", &pool<layers::avg_pool1d>, py::arg("name"), py::arg("x"), py::arg("window") = 2,
           py::arg("stride") = 0, py::arg("padding") = "VALID", py::arg("pads") = none,
           "max_pool1d with the mean of each window.");
}

void bind_graphs(py::class_<GraphHandle, GraphPointer>& graph) {
  graph.def(py::init([] { return handle_of(Graph()); }), "An empty graph.")
      .def_static(
          "from_json", [](const std::string& text) { return handle_of(graph_from_json(text)); }, py::arg("text"),
          "Reads graph JSON (docs/graph-json.md).")
      .def(
          "to_json", [](const GraphPointer& self) { return self->locked([](Graph& of) { return graph_to_json(of); }); },
          "The graph as graph JSON: the bytes that the program writes.")
      .def("add", &add, py::arg("op"), py::arg("name"), py::arg("inputs") = py::tuple(),
           "Adds a node of the type `op` of graph JSON and returns its first output. Keywords are the attributes of\n"
           "graph JSON: add(\"Conv2D\", \"conv1/Conv2D\", [x, w], strides=[2, 2], padding=\"SAME\"), or a loss,\n"
           "add(\"Huber\", \"loss\", [y, wanted], delta=0.5).")
      .def("output", &output, py::arg("name"), "The output \"node\" or \"node:k\".")
      .def_property("outputs", &outputs, &set_outputs, "The tensors that the graph is about: logits, say.")
      .def("nodes", &nodes, "A dictionary with name, op, inputs and attributes of each node, producers first.")
      .def(
          "clone",
          [](const GraphPointer& self) { return handle_of(self->locked([](Graph& of) { return of.clone(); })); },
          "A copy.")
      .def(
          "__len__", [](const GraphPointer& self) { return self->locked([](Graph& of) { return of.size(); }); },
          "The number of nodes.")
      .def("__repr__", [](const GraphPointer& self) {
        return self->locked([](Graph& of) {
          return concat("<miniqat.Graph nodes=", of.size(), " ", quantize::quantization_of(of).label(), ">");
        });
      });
}

py::tuple import_onnx(const std::filesystem::path& path, std::int64_t batch_size, std::int64_t height,
                      std::int64_t width) {
  for (const std::int64_t size : {batch_size, height, width})
    if (size < 0) throw py::value_error(concat("batch_size, height and width must not be negative, got ", size));
  importers::ImportedModel model = unlocked(
      [&] { return importers::import_onnx(path, {.batch_size = batch_size, .height = height, .width = width}); });
  py::dict variables = to_arrays(model.variables);
  py::object report = from_json(model.report.json());
  return py::make_tuple(handle_of(std::move(model.graph)), std::move(variables), std::move(report));
}

}  // namespace

void bind_graph(py::module_& module) {
  // Each names the other in its signatures.
  py::class_<OutputHandle> output_class(
      module, "Output", "A tensor of a graph, by its name. It is looked up at each use: a rewrite may remove nodes.");
  py::class_<GraphHandle, GraphPointer> graph_class(
      module, "Graph", "A network: nodes with unique names. Define it first, run it later (Session).");
  bind_outputs(output_class);
  bind_graphs(graph_class);
  bind_sequences(graph_class);
  module.def(
      "read_graph", [](const std::filesystem::path& path) { return handle_of(read_graph(path)); }, py::arg("path"),
      "Reads a graph JSON file.");
  module.def("import_onnx", &import_onnx, py::arg("path"), py::arg("batch_size") = 0, py::arg("height") = 0,
             py::arg("width") = 0,
             "Reads an ONNX model (docs/import.md): (graph, variables by name, report). 0: as in the file.");
  module.def("op_types", &registered_ops, "The types that Graph.add() and graph JSON know.");
}

}  // namespace miniqat::python
