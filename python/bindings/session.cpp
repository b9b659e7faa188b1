// Session: runs, training steps, variables, checkpoints.

#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include "core/text/suggest.h"
#include "python/bindings/handles.h"

namespace miniqat::python {
namespace {

std::vector<Output> resolved(const Graph& graph, const std::vector<std::string>& names) {
  std::vector<Output> outputs;
  for (const std::string& name : names) outputs.push_back(graph.output_at(name));
  return outputs;
}

/// Position of `value` among `names`. Throws Error that lists them.
std::size_t choice(const char* what, const std::string& value, const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == value) return i;
  fail(wrong_choice(what, value, names));
}

std::unique_ptr<SessionHandle> make_session(const std::shared_ptr<GraphHandle>& graph, std::uint64_t seed,
                                            const std::string& backend, const std::string& precision,
                                            const std::string& arithmetic, const std::string& rounding) {
  const bool reference = choice("backend", backend, {"fast", "reference"}) == 1;
  const bool wide = choice("precision", precision, {"float32", "float64"}) == 1;
  const auto known = names_of(Arithmetic{});
  const auto chosen = static_cast<Arithmetic>(choice("arithmetic", arithmetic, {known.begin(), known.end()}));
  if (reference && chosen == Arithmetic::kInteger)
    fail("arithmetic \"integer\" is the fast backend's; the reference loops simulate");
  const auto rounds = static_cast<FactorRounding>(
      choice("rounding", rounding, {"none", "bfloat16-gradients", "bfloat16", "int8-gradients"}));
  return std::make_unique<SessionHandle>(graph,
                                         SessionOptions{.seed = seed,
                                                        .backend = reference ? Backend::kReference : Backend::kFast,
                                                        .arithmetic = chosen,
                                                        .rounding = rounds,
                                                        .precision = wide ? DType::kFloat64 : DType::kFloat32});
}

BytesHandle make_bytes(const ArrayLike& array, double scale, std::int64_t zero_point) {
  const CodeGrid grid{static_cast<float>(scale), static_cast<float>(zero_point)};
  try {
    require_byte_grid(grid);
  } catch (const Error& error) {
    throw py::value_error(error.what());
  }
  return {borrow(array, DType::kUInt8, "array"), grid};
}

py::object run_session(SessionHandle& self, const OutputsLike& fetches, const py::dict& feeds, bool training) {
  const std::vector<std::string> names = output_names(fetches, self.graph);
  const bool single = py::isinstance<py::str>(fetches) || py::isinstance<OutputHandle>(fetches);
  const NamedFeeds fed(feeds, self.graph);
  const RunResult result = self.locked([&](Session& session) {
    const Graph& graph = session.graph();
    return session.run({.fetches = resolved(graph, names), .training = training}, fed.feeds_of(graph));
  });
  if (single) return to_array(result.fetched.front());
  return to_arrays(result.fetched);
}

py::list gradients(SessionHandle& self, const OutputLike& of, const OutputsLike& targets, const py::dict& feeds,
                   bool training) {
  const std::string differentiated = output_name(of, self.graph);
  const std::vector<std::string> names = output_names(targets, self.graph);
  const NamedFeeds fed(feeds, self.graph);
  const RunResult result = self.locked([&](Session& session) {
    const Graph& graph = session.graph();
    return session.run({.gradients_of = graph.output_at(differentiated),
                        .gradient_targets = resolved(graph, names),
                        .training = training},
                       fed.feeds_of(graph));
  });
  return to_arrays(result.gradients);
}

float train_step(SessionHandle& self, const OutputLike& loss, const Optimizer& optimizer, const py::dict& feeds) {
  const std::string name = output_name(loss, self.graph);
  const NamedFeeds fed(feeds, self.graph);
  return self.locked([&](Session& session) {
    const Graph& graph = session.graph();
    return session.train_step(graph.output_at(name), optimizer, fed.feeds_of(graph));
  });
}

py::dict variables(SessionHandle& self) {
  py::dict views;
  for (const auto& [name, tensor] : self.locked([](Session& session) { return session.variables(); }))
    views[py::str(name)] = to_view(tensor);
  return views;
}

py::dict checkpoint(SessionHandle& self) {
  NamedTensors copies;
  self.locked([&](Session& session) {
    for (const auto& [name, tensor] : session.checkpoint().tensors) copies.emplace(name, tensor.clone());
  });
  return to_arrays(copies);
}

/// {"restored", "fresh", "unused"}: names.
py::dict restore(SessionHandle& self, const py::object& source, const std::string& mode) {
  constexpr Session::Restore kModes[] = {Session::Restore::kExact, Session::Restore::kVariables,
                                         Session::Restore::kByName};
  const Session::Restore wanted = kModes[choice("mode", mode, {"exact", "variables", "by_name"})];
  Safetensors content;
  std::string name = "the dictionary";
  if (py::isinstance<py::dict>(source)) {
    content.tensors = copy_of(py::reinterpret_borrow<py::dict>(source));
  } else {
    const auto path = source.cast<std::filesystem::path>();
    name = path.string();
    content = read_safetensors(path);
  }
  const Session::RestoreReport report =
      self.locked([&](Session& session) { return session.restore(content, wanted, name); });
  py::dict names;
  names["restored"] = report.restored;
  names["fresh"] = report.fresh;
  names["unused"] = report.unused;
  return names;
}

/// What runs.
void bind_runs(py::class_<SessionHandle>& session) {
  session
      .def(
          py::init(&make_session), py::arg("graph"), py::arg("seed") = 1, py::arg("backend") = "fast",
          py::arg("precision") = "float32", py::arg("arithmetic") = "simulated", py::arg("rounding") = "none",
          "backend: \"fast\" or \"reference\", the naive loops; precision \"float64\" needs the latter. arithmetic, of the\n"
          "fast backend: \"integer\" multiplies the integers of quantized layers where that is faster. rounding, in training\n"
          "steps: \"bfloat16-gradients\" and \"int8-gradients\" round the output's gradient of layers that multiply integers\n"
          "(with arithmetic \"integer\"), \"bfloat16\" also both factors of other large products. They need a processor with\n"
          "AVX-512 BF16 or AMX; int8 one with AVX-512 VNNI or AMX. Same seed, number of threads and machine: the same bits.")
      .def("run", &run_session, py::arg("fetches"), py::arg("feeds") = py::dict(), py::arg("training") = false,
           "The values of an output, or a list of those of several. `feeds`: arrays or Bytes by output or name. With\n"
           "`training` batch statistics, observers and dropout act as in a step, and updated variables are kept.")
      .def("gradients", &gradients, py::arg("of"), py::arg("targets"), py::arg("feeds") = py::dict(),
           py::arg("training") = false,
           "The gradients of (the sum of) an output with respect to outputs of Variables and Placeholders.")
      .def("train_step", &train_step, py::arg("loss"), py::arg("optimizer"), py::arg("feeds"),
           "One step of training: forward, backward, optimizer. Returns the loss. Raises NonFiniteLoss; nothing of\n"
           "that step is kept then.")
      .def_property_readonly(
          "graph", [](const SessionHandle& self) { return self.graph; }, "The graph that it runs.")
      .def_property_readonly(
          "step", [](SessionHandle& self) { return self.locked([](Session& of) { return of.step(); }); },
          "Completed training steps.")
      .def_property(
          "quantization_step",
          [](SessionHandle& self) { return self.locked([](Session& of) { return of.quantization_step(); }); },
          [](SessionHandle& self, std::int64_t step) {
            self.locked([&](Session& of) { of.set_quantization_step(step); });
          },
          "Completed training steps since the graph first had an op with a delay.");
}

/// What it holds.
void bind_values(py::class_<SessionHandle>& session) {
  session
      .def(
          "variable",
          [](SessionHandle& self, const std::string& name) {
            return to_view(self.locked([&](Session& of) { return of.variable(name); }));
          },
          py::arg("name"),
          "A read-only array over the variable's memory: later steps show in it. Copy what is to stay.")
      .def("variables", &variables, "variable() of all by name, op states (\"<node>/<state>\") included.")
      .def(
          "set_variable",
          [](SessionHandle& self, const std::string& name, const ArrayLike& value) {
            const DType dtype = self.locked([&](Session& of) { return of.variable(name).dtype(); });
            const Borrowed array = borrow(value, dtype, "value");
            self.locked([&](Session& of) { of.set_variable(name, array.tensor); });
          },
          py::arg("name"), py::arg("value"), "Copies an array of the variable's shape into it.")
      .def("checkpoint", &checkpoint,
           "All that training needs to go on, as copies by name: variables, the optimizer's state, the counters.")
      .def(
          "save",
          [](SessionHandle& self, const std::filesystem::path& path) {
            self.locked([&](Session& of) { write_safetensors(path, of.checkpoint()); });
          },
          py::arg("path"), "Writes the checkpoint as a .safetensors file, as the program does.")
      .def("restore", &restore, py::arg("source"), py::arg("mode") = "exact",
           "Takes a .safetensors file or a dictionary of arrays. mode: \"exact\", to go on with a training;\n"
           "\"variables\", to evaluate; \"by_name\", what fits, as the start of another training. Returns the lists\n"
           "of names \"restored\", \"fresh\" and \"unused\".");
}

}  // namespace

void bind_session(py::module_& module) {
  py::class_<BytesHandle>(
      module, "Bytes",
      "Bytes that stand for numbers: a value in `feeds` for a placeholder of float32. A byte means\n"
      "(byte - zero_point) * scale, and the results have the bits that feeding these numbers gives.")
      .def(py::init(&make_bytes), py::arg("array"), py::arg("scale") = 1.0 / 255, py::arg("zero_point") = 0,
           "An array of uint8 in the placeholder's shape, used without a copy if it is C-contiguous.")
      .def_property_readonly(
          "array", [](const BytesHandle& self) { return py::reinterpret_borrow<py::array>(self.array.keeper); },
          "The bytes.")
      .def_property_readonly(
          "scale", [](const BytesHandle& self) { return self.grid.scale; }, "The distance of two bytes' numbers.")
      .def_property_readonly(
          "zero_point", [](const BytesHandle& self) { return static_cast<int>(self.grid.zero_point); },
          "The byte of 0.");
  py::class_<SessionHandle> session(
      module, "Session",
      "Runs a graph, which may be rewritten between two calls, and holds its variables.\n"
      "After a rewrite (create_training_graph(), create_eval_graph()) the next call runs\n"
      "the rewritten graph: variables keep their values by name, new ones begin with\n"
      "their initial values. A copy made before, Graph.clone(), keeps the float network.");
  bind_runs(session);
  bind_values(session);
  module.def(
      "read_safetensors", [](const std::filesystem::path& path) { return to_arrays(read_safetensors(path).tensors); },
      py::arg("path"), "The tensors of a .safetensors file, by name.");
  module.def(
      "write_safetensors",
      [](const std::filesystem::path& path, const py::dict& tensors) {
        write_safetensors(path, {.tensors = copy_of(tensors), .metadata = {}});
      },
      py::arg("path"), py::arg("tensors"), "Writes arrays by name, atomically.");
}

}  // namespace miniqat::python
