#include "python/bindings/handles.h"

#include <algorithm>

#include "core/text/error.h"

namespace miniqat::python {

std::string output_name(py::handle output, const std::shared_ptr<GraphHandle>& graph) {
  if (py::isinstance<py::str>(output)) return output.cast<std::string>();
  if (!py::isinstance<OutputHandle>(output)) throw py::type_error("expected an Output or its name");
  const auto& handle = output.cast<const OutputHandle&>();
  if (handle.graph != graph) fail("the tensor \"", handle.name, "\" is of another graph than this one");
  return handle.name;
}

std::vector<std::string> output_names(py::handle outputs, const std::shared_ptr<GraphHandle>& graph) {
  if (py::isinstance<py::str>(outputs) || py::isinstance<OutputHandle>(outputs)) return {output_name(outputs, graph)};
  std::vector<std::string> names;
  for (const py::handle output : outputs) names.push_back(output_name(output, graph));
  return names;
}

ClassifierHandle::ClassifierHandle(training::Classifier made)
    : whole(std::make_shared<training::Classifier>(std::move(made))),
      graph(std::make_shared<GraphHandle>(std::shared_ptr<Graph>(whole, &whole->graph))) {}

training::Classifier& ClassifierHandle::current() const {
  training::find_logits(*whole, "the classifier");
  return *whole;
}

NamedFeeds::NamedFeeds(const py::dict& arrays, const std::shared_ptr<GraphHandle>& graph) {
  for (const auto& [output, value] : items_of(arrays)) {
    const std::string name = output_name(output, graph);
    if (py::isinstance<BytesHandle>(value)) {
      const auto& bytes = value.cast<const BytesHandle&>();
      values_.emplace_back(name, CodedTensor(bytes.array.tensor, bytes.grid));
      keepers_.push_back(bytes.array.keeper);
      continue;
    }
    const DType dtype = graph->locked([&](Graph& of) { return of.output_at(name).spec().dtype; });
    Borrowed fed = borrow(value, dtype, concat("the array for \"", name, "\""));
    if (dtype == DType::kInt32 || dtype == DType::kInt64) fed.tensor = fed.tensor.clone();
    values_.emplace_back(name, fed.tensor);
    keepers_.push_back(std::move(fed.keeper));
  }
}

Feeds NamedFeeds::feeds_of(const Graph& graph) const {
  Feeds feeds;
  for (const auto& [name, value] : values_) {
    const Output output = graph.output_at(name);
    if (std::ranges::find(feeds, output, &Feeds::value_type::first) != feeds.end())
      fail("\"", output.name(), "\" is fed twice, by its name and as an Output");
    feeds.emplace_back(output, value);
  }
  return feeds;
}

SessionHandle::SessionHandle(const std::shared_ptr<GraphHandle>& graph_to_run, const SessionOptions& options)
    : graph(graph_to_run), session(graph->locked([&](Graph& of) { return std::make_unique<Session>(of, options); })) {}

void check_signals() {
  const Locked locked;
  if (in_python(PyErr_CheckSignals) != 0) throw py::error_already_set();
}

}  // namespace miniqat::python
