#include "exporters/c/source.h"

#include <algorithm>

#include "core/text/error.h"
#include "exporters/c/numbers.h"
#include "exporters/c/operation.h"
#include "exporters/c/runtime.h"
#include "exporters/c/text.h"
#include "integer/reference/engine.h"

namespace miniqat::exporters {
namespace {

using integer::Model;
using integer::Operation;
using integer::TensorInfo;

/// One integer for each byte.
constexpr std::int64_t kTableSize = 256;

std::string upper_case(std::string text) {
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return text;
}

void require_header_name(const std::string& name) {
  const auto plain = [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\' && c != '?'; };
  if (name.empty() || !std::ranges::all_of(name, plain))
    fail("C source: its header cannot be included as \"", in_comment(name), "\"");
}

void require_sizes(const Model& model) {
  for (const TensorInfo& tensor : model.tensors)
    if (tensor.shape.elements() > INT32_MAX / 4)
      fail("C source: tensor \"", tensor.name, "\" ", tensor.shape, " has more elements than int32_t counts");
}

void require_on_grid(const Model& model, const Tensor& images) {
  const TensorInfo& input = model.tensor(model.input);
  integer::batch_size(images, input);
  for (const std::uint8_t value : images.values<std::uint8_t>())
    if (value > input.grid.quant_max())
      fail("C source: a test image holds ", int{value}, ", tensor \"", input.name, "\" ends at ",
           input.grid.quant_max());
}

/// FNV-1a, which the generated self test computes as well.
std::uint32_t checksum(std::span<const std::uint8_t> values) {
  std::uint32_t sum = 2166136261u;
  for (const std::uint8_t value : values) sum = (sum ^ value) * 16777619u;
  return sum;
}

/// Both files of one model.
class Generator {
 public:
  Generator(const Model& model, const std::string& prefix, const std::string& header_name, const Tensor& images,
            const std::optional<integer::Grid>& bytes, const std::string& accuracy,
            const std::optional<CFrontEnd>& front_end)
      : model_(model),
        prefix_(prefix),
        macro_(upper_case(prefix)),
        header_name_(header_name),
        images_(images),
        bytes_(bytes == model.tensor(model.input).grid ? std::nullopt : bytes),
        accuracy_(accuracy),
        memory_(plan_c_memory(model)) {
    if (front_end) front_end_.emplace(*front_end, model);
    for (std::size_t i = 0; i < model.operations.size(); ++i)
      operations_.push_back(c_operation(model, i, memory_, weights_section()));
  }

  CFootprint footprint() const {
    CFootprint footprint = {
        .constants = (bytes_ ? kTableSize : 0) + c_constants_of_numbers(model_, !front_end_) +
                     (front_end_ ? front_end_->tables().bytes() : 0),
        .arena = static_cast<std::int64_t>(memory_.arena_bytes),
        .scratch = 4 * pool_sums() + 2 * filter() + (front_end_ ? front_end_->scratch() + input_size() : 0)};
    for (const COperation& operation : operations_) {
      footprint.weights += operation.weight_bytes;
      footprint.constants += operation.constant_bytes;
    }
    return footprint;
  }

  std::string header() const {
    std::string text = concat("/* ", title(), accuracy(), classes(), " */\n#ifndef ", macro_, "_H\n#define ", macro_,
                              "_H\n\n", "#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    text += grid_macros("INPUT", model_.tensor(model_.input));
    text += table_declaration();
    text += grid_macros("OUTPUT", model_.tensor(model_.output));
    text += c_declarations_of_numbers(model_, prefix_, macro_, !front_end_);
    text += model_.task.empty() ? declaration_for_classes() : declaration_for_numbers();
    if (front_end_) text += c_declarations_of_sound(*front_end_, model_, prefix_, macro_);
    text += concat(
        "/* Runs the test vectors. Returns 0 when all integers are the ones expected, otherwise the number (from 1) of the\n",
        "   first operation in the source that makes others. ", macro_, "_NO_SELF_TEST leaves it out. */\n", "int ",
        prefix_, "_self_test(void);\n\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
    return text;
  }

  std::string source() const {
    std::string text = concat("/* ", title(), "\n", summary(), " */\n#include \"", header_name_, "\"\n\n",
                              "#include <stddef.h>\n#include <string.h>\n");
    text += sections();
    text += working_memory();
    text += table();
    text += c_source_of_numbers(model_, prefix_, macro_, !front_end_);
    text += c_runtime(kernels());
    for (std::size_t i = 0; i < operations_.size(); ++i)
      if (!operations_[i].data.empty()) text += concat("\n/* ", description(i), " */\n", operations_[i].data);
    text += run();
    if (front_end_) text += c_source_of_sound(*front_end_, model_, prefix_, macro_);
    text += self_test();
    if (front_end_) text += c_self_test_of_sound(*front_end_, prefix_, macro_);
    return text;
  }

 private:
  std::string title() const {
    return concat("Written by miniqat " MINIQAT_VERSION ": the integer model \"", in_comment(model_.name),
                  "\" in C99.");
  }

  std::string accuracy() const { return accuracy_.empty() ? "" : "\n   " + in_comment(accuracy_); }

  /// What the outputs stand for.
  std::string classes() const {
    std::string text;
    for (std::size_t i = 0; i < model_.class_names.size(); ++i)
      text += concat(i > 0                 ? ""
                     : model_.task.empty() ? "\n   Classes:"
                                           : "\n   Outputs:",
                     "\n     ", i, " ", in_comment(model_.class_names[i]));
    return text;
  }

  std::string summary() const {
    const CFootprint bytes = footprint();
    return concat("   ", counted(model_.operations.size(), "operation"), ", ", model_.multiply_adds(),
                  " multiply-adds.\n", "   Flash: ", bytes.weights, " bytes of weights, ", bytes.constants,
                  " of other constants, the code.\n", "   RAM: ", bytes.arena, " bytes of activations, ", bytes.scratch,
                  " of scratch, the stack, the caller's input and output.\n",
                  "   Images are [height, width, channels]; all tensors are row-major integers of one byte, where\n",
                  "   real = scale * (integer - zero point).");
  }

  std::string grid_macros(std::string_view role, const TensorInfo& tensor) const {
    const std::string name = concat("#define ", macro_, "_", role);
    return concat("/* \"", in_comment(tensor.name), "\" ", tensor.shape, ", integers from 0 to ", macro_, "_", role,
                  "_MAX: real = scale * (integer - zero point). */\n", name, "_SIZE ", tensor.shape.elements(), "\n",
                  name, "_MAX ", tensor.grid.quant_max(), "\n", name, "_ZERO_POINT ", tensor.grid.zero_point, "\n",
                  name, "_SCALE ", float_constant(tensor.grid.scale), "\n\n");
  }

  std::string declaration_for_classes() const {
    return concat(
        "/* Runs the model on ", macro_, "_INPUT_SIZE integers and writes ", macro_,
        "_OUTPUT_SIZE. Returns the index of\n",
        "   the largest, of several the first: the class, where the model is a classifier. Working memory is static: one\n",
        "   run at a time. Input and output must not overlap. */\n", signature(), ";\n\n");
  }
  std::string declaration_for_numbers() const {
    return concat("/* Runs the model on ", macro_, "_INPUT_SIZE integers and writes ", macro_,
                  "_OUTPUT_SIZE: ", meaning(),
                  ".\n   Working memory is static: one run at a time. Input and output must not overlap. */\n",
                  signature(), ";\n\n");
  }
  /// What the outputs are where they are no classes.
  std::string meaning() const {
    if (model_.task == "multilabel")
      return concat("a logit for each\n   label, which holds where it is above ", macro_, "_OUTPUT_ZERO_POINT");
    if (model_.task == "reconstruct")
      return concat("the input\n   once more, ", model_.input_standard ? "standardised as it is, " : "",
                    "on a grid of its own. What differs much from the input is an anomaly");
    return model_.output_standard ? concat("numbers,\n   which ", prefix_, "_dequantize gives in the units of the data")
                                  : "numbers";
  }
  std::string signature() const {
    return concat(model_.task.empty() ? "int " : "void ", prefix_, "_run(const uint8_t *input, uint8_t *output)");
  }

  std::string table_name() const { return concat("const uint8_t ", prefix_, "_input_from_byte[256]"); }
  std::string table_declaration() const {
    if (!bytes_) return "";
    return concat(
        "/* The bytes of the pictures that the model was trained on are no integers of the input: there, real = ",
        float_constant(bytes_->scale), " *\n   (byte - ", bytes_->zero_point,
        "). This maps each to the integer to give. */\nextern ", table_name(), ";\n\n");
  }
  std::string table() const {
    if (!bytes_) return "";
    std::string text = concat("\n", table_name(), " = ");
    append_list(text, integer::input_table(*bytes_, model_.tensor(model_.input).grid));
    return text + ";\n";
  }

  std::int64_t input_size() const { return model_.tensor(model_.input).shape.elements(); }
  std::int64_t pool_sums() const { return largest(&COperation::sums); }
  std::int64_t filter() const { return largest(&COperation::filter); }
  std::int64_t largest(std::int64_t COperation::*member) const {
    std::int64_t most = 0;
    for (const COperation& operation : operations_) most = std::max(most, operation.*member);
    return most;
  }

  std::set<std::string_view> kernels() const {
    std::set<std::string_view> all;
    for (const COperation& operation : operations_) all.insert(operation.kernels.begin(), operation.kernels.end());
    return all;
  }

  std::string weights_section() const { return macro_ + "_WEIGHTS_SECTION"; }
  std::string sections() const {
    const std::string name = weights_section();
    return concat(
        "\n/* Stands before each array of weights: an attribute that gives them a section of their own, say. */\n",
        "#ifndef ", name, "\n#define ", name, "\n#endif\n");
  }

  std::string working_memory() const {
    std::string text = "\n";
    if (memory_.arena_bytes > 0)
      text +=
          concat("/* Tensors, those that are not needed at the same time in the same place. */\nstatic uint8_t arena[",
                 memory_.arena_bytes, "];\n");
    if (pool_sums() > 0) text += concat("static int32_t pool_sums[", pool_sums(), "];\n");
    if (filter() > 0)
      text += concat("/* Weights that a layer unpacks at once. */\n#define FILTER_SIZE ", filter(),
                     "\nstatic int16_t filter[FILTER_SIZE];\n");
    return text;
  }

  std::string description(std::size_t index) const {
    const Operation& operation = model_.operations[index];
    std::string inputs;
    for (std::size_t i = 0; i < operation.inputs.size(); ++i)
      inputs += concat(i > 0 ? " and " : "", model_.input_of(operation, i).shape);
    std::string text = concat("Operation ", index + 1, ": ", type_name(operation.action), " \"",
                              in_comment(operation.name), "\", ", inputs, " to ", model_.output_of(operation).shape);
    if (const auto* layer = std::get_if<integer::Layer>(&operation.action))
      text += concat(", weights ", layer->filter, " of ", layer->weight_bits, " bits");
    if (const auto* lookup = std::get_if<integer::Lookup>(&operation.action))
      text += ", " + in_comment(lookup->function);
    return text;
  }

  /// The code after the operations: none, unless no operation made the output.
  std::string last_copy() const {
    if (memory_.pointers[model_.output] == "output" && model_.output != model_.input) return "";
    return concat("  memcpy(output, input, ", macro_, "_INPUT_SIZE);\n");
  }

  std::string run() const {
    std::string text;
    if (!operations_.empty()) {
      text += concat("\n#define OPERATIONS ", operations_.size(), "\n\n",
                     "/* Runs one operation, numbered from 1, and returns what it made. */\n",
                     "static const uint8_t *run_operation(int32_t number, const uint8_t *input, uint8_t *output) {\n",
                     model_.output == model_.input ? "  (void)output;\n" : "", "  switch (number) {\n");
      for (std::size_t i = 0; i < operations_.size(); ++i)
        text += concat("    case ", i + 1, ": /* ", description(i), " */\n", operations_[i].calls, "      return ",
                       memory_.pointers[model_.operations[i].output], ";\n");
      text += "    default:\n      return NULL;\n  }\n}\n";
    }
    text += concat("\n", signature(), " {\n", model_.task.empty() ? "  int32_t best = 0;\n" : "");
    if (!operations_.empty())
      text += "  for (int32_t number = 1; number <= OPERATIONS; ++number) run_operation(number, input, output);\n";
    text += last_copy();
    if (!model_.task.empty()) return text + "}\n";
    text += concat("  for (int32_t i = 1; i < ", macro_, "_OUTPUT_SIZE; ++i)\n",
                   "    if (output[i] > output[best]) best = i;\n  return (int)best;\n}\n");
    return text;
  }

  std::string self_test() const {
    const std::vector<Tensor> tensors = integer::reference::run(model_, images_);
    const std::int64_t count = images_.shape()[0];
    std::string text = concat("\n#ifndef ", macro_, "_NO_SELF_TEST\n#define TESTS ", count, "\n\n");
    test_array(text, "test_inputs", macro_ + "_INPUT_SIZE", images_);
    test_array(text, "test_outputs", macro_ + "_OUTPUT_SIZE", tensors[model_.output]);
    if (!operations_.empty()) text += operation_test(tensors);
    text += concat("int ", prefix_, "_self_test(void) {\n  static uint8_t output[", macro_, "_OUTPUT_SIZE];\n",
                   "  for (int32_t test = 0; test < TESTS; ++test) {\n");
    if (!operations_.empty())
      text += "    const int wrong = first_wrong_operation(test, output);\n    if (wrong != 0) return wrong;\n";
    text += concat("    ", prefix_, "_run(test_inputs[test], output);\n",
                   "    if (memcmp(output, test_outputs[test], sizeof output) != 0) return ",
                   std::max<std::size_t>(operations_.size(), 1), ";\n  }\n  return 0;\n}\n#endif\n");
    return text;
  }

  /// One row of the array for each example of the batch.
  static void test_array(std::string& text, std::string_view name, const std::string& size, const Tensor& batch) {
    const std::span<const std::uint8_t> values = batch.values<std::uint8_t>();
    const std::size_t n = batch.shape()[0], each = values.size() / n;
    text += concat("static const uint8_t ", name, "[TESTS][", size, "] = {\n");
    for (std::size_t i = 0; i < n; ++i) {
      append_list(text, values.subspan(i * each, each));
      text += i + 1 < n ? ",\n" : "};\n";
    }
  }

  std::string operation_test(const std::vector<Tensor>& tensors) const {
    const std::size_t n = images_.shape()[0];
    std::string text = "/* The sizes of the operations' outputs, and FNV-1a of them for each test. */\n";
    std::vector<std::int32_t> sizes;
    for (const Operation& operation : model_.operations)
      sizes.push_back(static_cast<std::int32_t>(model_.output_of(operation).shape.elements()));
    append_array(text, "int32_t", "operation_sizes", sizes);
    text += "static const uint32_t operation_checksums[TESTS][OPERATIONS] = {\n";
    for (std::size_t i = 0; i < n; ++i) {
      std::string separator = "{";
      for (std::size_t k = 0; k < sizes.size(); ++k) {
        const Tensor& tensor = tensors[model_.operations[k].output];
        const auto size = static_cast<std::size_t>(sizes[k]);
        text += concat(separator, checksum(tensor.values<std::uint8_t>().subspan(i * size, size)), "u");
        separator = k % 8 == 7 ? ",\n " : ", ";
      }
      text += i + 1 < n ? "},\n" : "}};\n";
    }
    return text + R"c(
static int first_wrong_operation(int32_t test, uint8_t *output) {
  for (int32_t number = 1; number <= OPERATIONS; ++number) {
    const uint8_t *made = run_operation(number, test_inputs[test], output);
    uint32_t sum = 2166136261u;
    for (int32_t i = 0; i < operation_sizes[number - 1]; ++i) sum = (sum ^ made[i]) * 16777619u;
    if (sum != operation_checksums[test][number - 1]) return (int)number;
  }
  return 0;
}

)c";
  }

  const Model& model_;
  std::string prefix_;
  std::string macro_;
  std::string header_name_;
  const Tensor& images_;
  /// The grid of the pictures' bytes, where it is another than the input's.
  std::optional<integer::Grid> bytes_;
  std::string accuracy_;
  std::optional<FixedFrontEnd> front_end_ = {};
  CMemory memory_;
  std::vector<COperation> operations_;
};

}  // namespace

CSource c_source(const Model& model, const std::string& prefix, const std::string& header_name, const Tensor& images,
                 const std::optional<integer::Grid>& bytes, const std::string& accuracy,
                 const std::optional<CFrontEnd>& front_end) {
  if (!is_identifier(prefix)) fail("C source: the prefix \"", in_comment(prefix), "\" is not a C identifier");
  require_header_name(header_name);
  model.check();
  require_sizes(model);
  require_on_grid(model, images);
  const Generator generator(model, prefix, header_name, images, bytes, accuracy, front_end);
  return {.header = generator.header(), .source = generator.source(), .footprint = generator.footprint()};
}

}  // namespace miniqat::exporters
