#include "tests/exporters/c/board.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "core/tensors/random.h"
#include "integer/reference/engine.h"
#include "tests/exporters/c/c_project.h"
#include "tests/integer/random_model.h"
#include "tests/source_dir.h"

namespace miniqat::testing {

const std::array<BoardTarget, 2> kBoardTargets = {
    {{"cortex-m4", {"arm-none-eabi-gcc", "arm-none-eabi-nm", "qemu-system-arm"}},
     {"rv32imac", {"riscv64-unknown-elf-gcc", "riscv64-unknown-elf-nm", "qemu-system-riscv32"}}}};

namespace {

using exporters::CFootprint;
using exporters::FixedFrontEnd;
using integer::Model;

constexpr std::int64_t kRandomExamples = 2;
const std::filesystem::path kBoards = source_dir() / "tests/exporters/c/boards";

/// A command's output; empty when it fails.
std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  for (int c = 0; pipe != nullptr && (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
  return pipe != nullptr && pclose(pipe) == 0 ? text : "";
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(c));
  return text;
}

std::string compile_flags(const BoardTarget& target) {
  return target.name == "cortex-m4" ? "-mcpu=cortex-m4 -mthumb"
                                    : "-march=rv32imac -mabi=ilp32 -msmall-data-limit=0 --specs=picolibc.specs";
}

std::string c_array(const std::string& type, const std::string& name, const auto& values) {
  std::string text = "static const " + type + " " + name + "[] = {";
  for (const auto value : values) text += std::to_string(value) + ",";
  return text + "};\n";
}

/// The integers that the model takes.
Tensor inputs_of(const OnBoard& exported) {
  if (!exported.front_end) return exported.images;
  const FixedFrontEnd front_end(*exported.front_end, exported.model);
  const auto length = static_cast<std::size_t>(exported.front_end->samples());
  std::vector<std::uint8_t> inputs;
  for (std::size_t at = 0; at < exported.sounds.size(); at += length) {
    const std::vector<std::uint8_t> one = front_end.features(std::span(exported.sounds).subspan(at, length));
    inputs.insert(inputs.end(), one.begin(), one.end());
  }
  return Tensor::from<std::uint8_t>(
      integer::batch_shape(exported.examples(), exported.model.tensor(exported.model.input).shape), inputs);
}

/// The examples of one model, what runs it whatever it returns, and the call that prints it.
std::string part_of_main(const std::string& prefix, const OnBoard& exported, std::string& calls) {
  const std::string macro = upper(prefix), examples = prefix + "_examples";
  const bool is_sound = exported.front_end.has_value();
  std::string text = "#include \"" + prefix + ".h\"\n";
  text += is_sound ? c_array("int16_t", examples, exported.sounds)
                   : c_array("uint8_t", examples, exported.images.values<std::uint8_t>());
  text += "static int run_" + prefix + "(int32_t i, uint8_t *y) {\n  ";
  const std::string run = prefix + (is_sound ? "_run_sound(" : "_run(") + examples + " + i * " + macro +
                          (is_sound ? "_SAMPLES" : "_INPUT_SIZE") + ", y)";
  text += exported.model.task.empty() ? "return " + run + ";\n}\n" : run + ";\n  return 0;\n}\n";
  calls += "  print_model(\"" + prefix + "\", " + prefix + "_self_test()" +
           (is_sound ? " + 1000 * " + prefix + "_sound_self_test()" : "") + ", run_" + prefix + ", " +
           std::to_string(exported.examples()) + ", " + macro + "_OUTPUT_SIZE, " + macro + "_OUTPUT_ZERO_POINT, " +
           macro + "_OUTPUT_SCALE, " + (exported.gives_class() ? "1" : "0") + ");\n";
  return text;
}

constexpr const char* kPrintModel = R"c(
static void print_number(uint32_t number) {
  board_print(" ");
  board_number(number);
}

static void print_model(const char *name, int self_test, int (*run)(int32_t, uint8_t *), int32_t examples,
                        uint32_t outputs, uint32_t zero_point, float scale, int with_class) {
  static uint8_t output[4096];
  uint32_t bits;
  const uint32_t start = board_instructions();
  run(0, output);
  const uint32_t end = board_instructions();
  board_print(name);
  print_number((uint32_t)self_test);
  print_number(end - start);
  print_number(zero_point);
  memcpy(&bits, &scale, sizeof bits);
  print_number(bits);
  for (int32_t i = 0; i < examples; ++i) {
    const int class_of = run(i, output);
    for (uint32_t k = 0; k < outputs; ++k) print_number(output[k]);
    if (with_class) print_number((uint32_t)class_of);
  }
  board_print("\n");
}

int main(void) {
)c";

}  // namespace

std::string missing_tools(const BoardTarget& target) {
  std::string missing;
  for (const std::string& tool : target.tools)
    if (output_of("command -v " + tool).empty()) missing += (missing.empty() ? "" : " ") + tool;
  return missing;
}

std::int64_t OnBoard::examples() const {
  return front_end ? std::ssize(sounds) / front_end->samples() : images.shape()[0];
}

std::vector<long> OnBoard::expected(long instructions) const {
  const integer::TensorInfo& output = model.tensor(model.output);
  std::vector<long> expected = {0, instructions, output.grid.zero_point,
                                static_cast<long>(std::bit_cast<std::uint32_t>(output.grid.scale))};
  const Tensor outputs = integer::reference::run(model, inputs_of(*this))[static_cast<std::size_t>(model.output)];
  const auto all = outputs.values<std::uint8_t>();
  const auto each = static_cast<std::size_t>(output.shape.elements());
  for (std::size_t at = 0; at < all.size(); at += each) {
    const auto one = all.subspan(at, each);
    expected.insert(expected.end(), one.begin(), one.end());
    if (gives_class()) expected.push_back(std::ranges::max_element(one) - one.begin());
  }
  return expected;
}

void Board::add(const std::string& prefix, const Model& model, const std::optional<exporters::CFrontEnd>& front_end) {
  Random random(models_.size());
  OnBoard exported{.model = model, .images = random_images(random, model, kRandomExamples), .front_end = front_end};
  if (front_end) exported.sounds = FixedFrontEnd(*front_end, model).test_sound();
  const exporters::CSource c = exporters::c_source(model, prefix, prefix + ".h", exported.images, {}, "", front_end);
  exported.footprint = c.footprint;
  add(prefix, exported, c.header, c.source);
}

void Board::add(const std::string& prefix, const OnBoard& exported, const std::string& header,
                const std::string& source) {
  directory_.write(prefix + ".h", header);
  directory_.write(prefix + ".c", source);
  models_[prefix] = exported;
}

std::map<std::string, std::vector<long>> Board::run(const BoardTarget& target, const std::string& flags) const {
  directory_.write("main.c", main());
  std::string sources = "main.c";
  for (const auto& [prefix, exported] : models_) sources += " " + prefix + ".c";
  std::istringstream lines(output_of(
      in_place(kBoards.string() + "/build " + target.name + " program " + sources + " " + kStrict + " -Os " + flags) +
      " && " + kBoards.string() + "/run " + target.name + " program"));
  std::map<std::string, std::vector<long>> results;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string prefix;
    words >> prefix;
    for (long number = 0; words >> number;) results[prefix].push_back(number);
  }
  return results;
}

std::map<std::string, std::vector<long>> Board::expect_integers(const BoardTarget& target,
                                                                const std::string& flags) const {
  std::map<std::string, std::vector<long>> results = run(target, flags);
  EXPECT_EQ(results.size(), models_.size()) << "the program did not compile, or did not end";
  for (const auto& [prefix, numbers] : results)
    EXPECT_EQ(numbers, models_.at(prefix).expected(numbers.size() > 1 ? numbers[1] : 0)) << prefix;
  return results;
}

std::string Board::float_calls(const BoardTarget& target, const std::string& prefix) const {
  return output_of(in_place(target.tools[0] + " -c -Os " + compile_flags(target) + " -o object.o " + prefix +
                            ".c && { " + target.tools[1] +
                            " -u object.o | grep -E '__aeabi_[fd]|__[a-z]*[sd]f' || echo none; }"));
}

CFootprint Board::compiled(const BoardTarget& target, const std::string& prefix) const {
  std::istringstream lines(output_of(in_place(
      target.tools[0] + " -c -fdata-sections -fno-jump-tables " + compile_flags(target) + " -DNO_SELF_TEST -D" +
      upper(prefix) + "_NO_SELF_TEST -o object.o " + prefix + ".c && " + target.tools[1] + " -S object.o")));
  CFootprint sizes;
  std::string address, size, kind, name;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    if (!(words >> address >> size >> kind >> name)) continue;
    const long bytes = std::strtol(size.c_str(), nullptr, 16);
    // "r" and "R" are flash, "b" is RAM.
    if (kind == "b") (name == "arena" ? sizes.arena : sizes.scratch) += bytes;
    if (kind == "r" || kind == "R") (name.starts_with("weights_") ? sizes.weights : sizes.constants) += bytes;
  }
  return sizes;
}

std::string Board::main() const {
  std::string parts = "#include <string.h>\n#include \"board.h\"\n", calls;
  for (const auto& [prefix, exported] : models_) parts += part_of_main(prefix, exported, calls);
  return parts + kPrintModel + calls + "  return 0;\n}\n";
}

}  // namespace miniqat::testing
