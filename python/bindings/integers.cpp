// Integer models: files, exports, the engine.

#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <algorithm>
#include <cmath>

#include "core/text/error.h"
#include "datasets/standard.h"
#include "exporters/c/source.h"
#include "exporters/html/html.h"
#include "exporters/json.h"
#include "exporters/onnx/onnx.h"
#include "exporters/onnx/onnx_float.h"
#include "exporters/tflite/tflite.h"
#include "integer/arithmetic.h"
#include "integer/engine.h"
#include "integer/format/model_file.h"
#include "python/bindings/handles.h"

namespace miniqat::python {

/// One thread at a time.
struct EngineHandle {
  explicit EngineHandle(const ModelHandle& model) : engine(*model.model) {}

  integer::Engine engine;
  OneAtATime turns;
};
template <>
inline constexpr bool kIsBound<EngineHandle> = true;

namespace {

using integer::Model;

/// `write` of the model without the interpreter's lock, as bytes.
template <class Write>
py::bytes bytes_of(const ModelHandle& self, const Write& write) {
  const std::shared_ptr<const Model> model = self.model;
  return unlocked([&]() -> std::string { return write(*model); });
}

/// The grid of the pictures' bytes: the input's if none is given.
std::optional<integer::Grid> grid_of(const std::optional<std::pair<float, std::int32_t>>& bytes) {
  if (!bytes) return {};
  if (!std::isfinite(bytes->first) || bytes->first <= 0 || bytes->second < 0 || bytes->second > 255)
    throw py::value_error(concat("picture_grid is (scale, zero point): a positive number and a byte, not (",
                                 bytes->first, ", ", bytes->second, ")"));
  return integer::Grid{.scale = bytes->first, .zero_point = bytes->second, .bits = 8};
}

py::tuple to_c(const ModelHandle& self, const std::string& prefix, const ArrayLike& images,
               const std::string& header_name, const std::optional<std::pair<float, std::int32_t>>& picture_grid,
               const std::string& accuracy) {
  const Borrowed vectors = borrow(images, DType::kUInt8, "images");
  const std::shared_ptr<const Model> model = self.model;
  const std::optional<integer::Grid> grid = grid_of(picture_grid);
  const exporters::CSource code = unlocked([&] {
    return exporters::c_source(*model, prefix, header_name.empty() ? prefix + ".h" : header_name, vectors.tensor, grid,
                               accuracy);
  });
  return py::make_tuple(py::bytes(code.header), py::bytes(code.source));
}

py::bytes to_html(const ModelHandle& self, const std::string& title, const ArrayLike& pictures,
                  const std::vector<std::string>& picture_names, const std::string& label,
                  const std::optional<std::pair<float, std::int32_t>>& picture_grid) {
  const Borrowed shown = pictures.is_none() ? Borrowed{} : borrow(pictures, DType::kUInt8, "pictures");
  const integer::Grid input = self.model->tensor(self.model->input).grid;
  if (!picture_grid && input.bits < 8)
    throw py::value_error(
        concat("the model's input has ", input.bits, " bits: picture_grid says what a picture's bytes are"));
  const integer::Grid grid = grid_of(picture_grid).value_or(input);
  return bytes_of(self, [&](const Model& model) {
    return exporters::html({.title = title,
                            .models = {{.model = model, .label = label, .bytes = grid}},
                            .pictures = shown.tensor,
                            .picture_names = picture_names});
  });
}

/// {"name", "shape", "scale", "zero_point", "bits"} of each tensor, the input first.
py::list tensors(const ModelHandle& self) {
  py::list all;
  for (const integer::TensorInfo& tensor : self.model->tensors) {
    py::dict one;
    one["name"] = tensor.name;
    one["shape"] = to_tuple(tensor.shape);
    one["scale"] = tensor.grid.scale;
    one["zero_point"] = tensor.grid.zero_point;
    one["bits"] = tensor.grid.bits;
    all.append(one);
  }
  return all;
}

/// (type, name) of each.
py::list operations(const ModelHandle& self) {
  py::list all;
  for (const integer::Operation& operation : self.model->operations)
    all.append(py::make_tuple(std::string(integer::type_name(operation.action)), operation.name));
  return all;
}

void set_class_names(ModelHandle& self, const std::vector<std::string>& names) {
  Model renamed = *self.model;
  renamed.class_names = names;
  try {
    renamed.check();
  } catch (const Error& error) {
    throw py::value_error(concat("class_names: ", error.what()));
  }
  self.model = std::make_shared<const Model>(std::move(renamed));
}

/// The means, or the deviations, of a standard as an array; None without.
py::object standard_array(const std::optional<Standard>& standard, std::vector<float> Standard::*numbers) {
  if (!standard) return py::none();
  const std::vector<float>& values = (*standard).*numbers;
  return to_array(Tensor::from({std::ssize(values)}, values));
}

/// Throws ValueError unless the array is a batch of what a tensor of the model has.
void require_batch_of(const Shape& given, const integer::TensorInfo& tensor, const char* argument) {
  if (given.rank() < 1 || given != integer::batch_shape(given[0], tensor.shape))
    throw py::value_error(concat(argument, " has the shape ", given, "; the model's are [n, ...] of ", tensor.shape));
}

py::array to_integers(const ModelHandle& self, const ArrayLike& numbers) {
  const Borrowed given = borrow(numbers, DType::kFloat32, "numbers");
  const integer::TensorInfo& input = self.model->tensor(self.model->input);
  require_batch_of(given.tensor.shape(), input, "numbers");
  const std::optional<Standard>& standard = self.model->input_standard;
  if (std::ranges::any_of(given.tensor.values<float>(), [](float number) { return std::isnan(number); }))
    throw py::value_error("numbers holds NaN, which no integer stands for");
  const Tensor network = standard ? datasets::standardised(given.tensor, *standard) : given.tensor;
  Tensor integers(network.shape(), DType::kUInt8);
  for (std::int64_t i = 0; i < network.elements(); ++i)
    integers.data<std::uint8_t>()[i] = integer::quantize(input.grid, network.data<float>()[i]);
  return to_array(integers);
}

py::array to_numbers(const ModelHandle& self, const ArrayLike& integers) {
  const Borrowed given = borrow(integers, DType::kUInt8, "integers");
  const integer::TensorInfo& output = self.model->tensor(self.model->output);
  require_batch_of(given.tensor.shape(), output, "integers");
  const std::optional<Standard>& standard = self.model->output_standard;
  Tensor numbers(given.tensor.shape());
  for (std::int64_t i = 0; i < numbers.elements(); ++i) {
    const float number = integer::dequantize(output.grid, given.tensor.data<std::uint8_t>()[i]);
    const auto channel = static_cast<std::size_t>(i % output.shape.elements());
    numbers.data<float>()[i] = standard ? static_cast<float>(standard->restored(channel, number)) : number;
  }
  return to_array(numbers);
}

void bind_standards(py::class_<ModelHandle>& model) {
  model
      .def_property_readonly(
          "task", [](const ModelHandle& self) { return self.model->task.empty() ? "classify" : self.model->task; },
          "What the outputs are for: \"classify\", \"regress\", \"reconstruct\" or \"multilabel\" (docs/tasks.md).")
      .def_property_readonly(
          "input_mean",
          [](const ModelHandle& self) { return standard_array(self.model->input_standard, &Standard::mean); },
          "What numbers are standardised with before they come to the input's grid, for each channel; None without.")
      .def_property_readonly(
          "input_std",
          [](const ModelHandle& self) { return standard_array(self.model->input_standard, &Standard::deviation); },
          "The deviations to these means.")
      .def_property_readonly(
          "output_mean",
          [](const ModelHandle& self) { return standard_array(self.model->output_standard, &Standard::mean); },
          "What the targets of a regression were standardised with; None without.")
      .def_property_readonly(
          "output_std",
          [](const ModelHandle& self) { return standard_array(self.model->output_standard, &Standard::deviation); },
          "The deviations to these means.")
      .def("quantize", &to_integers, py::arg("numbers"),
           "Numbers in the units of the data, [n, ...], as integers for Engine.run(): standardised, then on the\n"
           "input's grid.")
      .def("dequantize", &to_numbers, py::arg("integers"),
           "Integers of the output, [n, ...], as numbers: of a regression in the units of its targets.");
}

void bind_exports(py::class_<ModelHandle>& model) {
  model
      .def(
          "to_miniqat", [](const ModelHandle& self) { return bytes_of(self, integer::to_bytes); },
          "The bytes of a .miniqat file, for the engine here.")
      .def(
          "to_tflite",
          [](const ModelHandle& self, bool float_io, bool int8, bool int4) {
            return bytes_of(self, [&](const Model& model) {
              return exporters::tflite(model, {.float_io = float_io, .int8 = int8, .int4 = int4});
            });
          },
          py::arg("float_io") = false, py::arg("int8") = false, py::arg("int4") = false,
          "The bytes of a TensorFlow Lite file (docs/exports-tflite.md).")
      .def(
          "to_onnx",
          [](const ModelHandle& self, bool packed_4_bits, std::optional<std::int64_t> opset) {
            return bytes_of(self, [&](const Model& model) {
              return exporters::onnx(model, {.packed_4_bits = packed_4_bits, .opset = opset});
            });
          },
          py::arg("packed_4_bits") = true, py::arg("opset") = py::none(),
          "The bytes of an ONNX file in QDQ form (docs/exports-onnx.md). Without an opset, of the lowest that holds it.")
      .def(
          "to_json",
          [](const ModelHandle& self, const std::optional<std::pair<float, std::int32_t>>& picture_grid) {
            const std::optional<integer::Grid> grid = grid_of(picture_grid);
            return bytes_of(self, [&](const Model& model) { return exporters::json(model, grid); });
          },
          py::arg("picture_grid") = py::none(),
          "All numbers as JSON text, in bytes. picture_grid: (scale, zero point) of the pictures' bytes.")
      .def("to_c", &to_c, py::arg("prefix"), py::arg("images"), py::arg("header_name") = "",
           py::arg("picture_grid") = py::none(), py::arg("accuracy") = "",
           "C99: (header, source) in bytes. `images`, uint8, become test vectors; `accuracy` is a line of comment.")
      .def(
          "to_html", &to_html, py::arg("title"), py::arg("pictures") = py::none(),
          py::arg("picture_names") = std::vector<std::string>(), py::arg("label") = "integers",
          py::arg("picture_grid") = py::none(),
          "A page that runs a model of pictures and classes in a browser, in bytes. `pictures`: uint8, with a name for\n"
          "each. picture_grid: (scale, zero point) of their bytes; default: the input's.");
}

void bind_model(py::module_& module) {
  py::class_<ModelHandle> model(module, "IntegerModel", "An integer-only model: what convert() makes.");
  model
      .def_static(
          "from_bytes",
          [](const py::bytes& bytes) { return ModelHandle(integer::from_bytes(std::string_view(bytes), "the bytes")); },
          py::arg("content"), "Reads the bytes of a .miniqat file.")
      .def_static(
          "read", [](const std::filesystem::path& path) { return ModelHandle(integer::read_model(path)); },
          py::arg("path"), "Reads a .miniqat file.")
      .def_property_readonly(
          "name", [](const ModelHandle& self) { return self.model->name; }, "Its name, for messages and comments.")
      .def_property(
          "class_names", [](const ModelHandle& self) { return self.model->class_names; }, &set_class_names,
          "The names of the classes, labels or numbers, if they are known.")
      .def_property_readonly("tensors", &tensors, "name, shape, scale, zero_point and bits of each; the input first.")
      .def_property_readonly("operations", &operations, "(type, name) of each, in the order in which they run.")
      .def(
          "weight_bytes", [](const ModelHandle& self) { return self.model->weight_bytes(); },
          "Bytes of all weights packed to their bits, without biases.")
      .def(
          "multiply_adds", [](const ModelHandle& self) { return self.model->multiply_adds(); }, "Of one example.")
      .def("__repr__", [](const ModelHandle& self) {
        const Model& model = *self.model;
        return concat("<miniqat.IntegerModel ", model.name, " operations=", model.operations.size(),
                      " weight_bytes=", model.weight_bytes(), ">");
      });
  bind_standards(model);
  bind_exports(model);
}

/// Integers of the model's input.
Borrowed integers_for(const EngineHandle& engine, const ArrayLike& images) {
  Borrowed given = borrow(images, DType::kUInt8, "images");
  const Model& model = engine.engine.model();
  const std::int32_t most = model.tensor(model.input).grid.quant_max();
  for (const std::uint8_t integer : given.tensor.values<std::uint8_t>())
    if (integer > most)
      throw py::value_error(concat("images holds ", int{integer}, ", and the integers of the model's input end at ",
                                   most, ": IntegerModel.quantize() makes them of numbers"));
  return given;
}

py::array run(EngineHandle& self, const ArrayLike& images) {
  const Borrowed given = integers_for(self, images);
  const Tensor output = unlocked([&] {
    const OneAtATime::Turn turn(self.turns);
    return self.engine.run(given.tensor).clone();
  });
  return to_array(output);
}

py::dict run_all(EngineHandle& self, const ArrayLike& images) {
  const Borrowed given = integers_for(self, images);
  const std::vector<Tensor> values = unlocked([&] {
    const OneAtATime::Turn turn(self.turns);
    return self.engine.run_all(given.tensor);
  });
  py::dict arrays;
  for (std::size_t i = 0; i < values.size(); ++i)
    arrays[py::str(self.engine.model().tensors[i].name)] = to_array(values[i].clone());
  return arrays;
}

py::bytes onnx_float(GraphHandle& graph, const py::dict& variables, const std::string& name,
                     std::optional<std::int64_t> opset) {
  const NamedTensors values = copy_of(variables);
  return graph.locked([&](Graph& of) { return exporters::onnx_float(of, values, {.name = name, .opset = opset}); });
}

}  // namespace

void bind_integers(py::module_& module) {
  bind_model(module);
  py::class_<EngineHandle>(module, "Engine", "Runs an integer model: the same integers on every machine.")
      .def(py::init<const ModelHandle&>(), py::arg("model"), "Lays the weights out for this processor.")
      .def("run", &run, py::arg("images"),
           "Pictures [n, h, w, c] uint8, or other examples (IntegerModel.quantize()), to the output [n, ...] uint8.")
      .def("run_all", &run_all, py::arg("images"), "Every tensor of the model by name.");
  module.def("onnx_float", &onnx_float, py::arg("graph"), py::arg("variables"), py::arg("name") = "network",
             py::arg("opset") = py::none(),
             "The bytes of an ONNX file of a float network. Without an opset, of the lowest that holds it.");
}

}  // namespace miniqat::python
