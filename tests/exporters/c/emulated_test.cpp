// The C that is generated, compiled for a Cortex-M4 and a 32-bit RISC-V and run on the boards that QEMU emulates.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <map>
#include <optional>
#include <sstream>

#include "core/files/files.h"
#include "exporters/c/source.h"
#include "integer/reference/engine.h"
#include "tests/exporters/c/c_project.h"
#include "tests/exporters/c/sounds.h"
#include "tests/fewer_cases.h"
#include "tests/integer/random_model.h"

namespace miniqat::exporters::emulated_test {
namespace {

using integer::Model;
using testing::random_images;
using testing::RandomModel;

constexpr std::int64_t kImages = 2;
constexpr const char* kBoards = MINIQAT_SOURCE_DIR "/tests/exporters/c/boards";

/// A processor with its tools, which tests/exporters/c/boards/build and run know.
struct Target {
  std::string name;
  std::vector<std::string> tools;
};
const std::array<Target, 2> kTargets = {
    {{"cortex-m4", {"arm-none-eabi-gcc", "arm-none-eabi-nm", "qemu-system-arm"}},
     {"rv32imac", {"riscv64-unknown-elf-gcc", "riscv64-unknown-elf-nm", "qemu-system-riscv32"}}}};

/// A command's output; empty when it fails.
std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  for (int c = 0; pipe != nullptr && (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
  return pipe != nullptr && pclose(pipe) == 0 ? text : "";
}

std::string missing_tools(const Target& target) {
  std::string missing;
  for (const std::string& tool : target.tools)
    if (output_of("command -v " + tool).empty()) missing += (missing.empty() ? "" : " ") + tool;
  return missing;
}

struct Exported {
  Model model;
  Tensor images;
  CFootprint footprint;
  std::optional<CFrontEnd> front_end;
};

/// What the board prints of a model behind its name, if it takes so many instructions.
std::vector<long> expected_of(const Exported& exported, const Tensor& inputs, long instructions) {
  const Model& model = exported.model;
  const integer::Grid& grid = model.tensor(model.output).grid;
  std::vector<long> expected = {0, instructions, grid.zero_point,
                                static_cast<long>(std::bit_cast<std::uint32_t>(grid.scale))};
  const Tensor outputs = integer::reference::run(model, inputs)[static_cast<std::size_t>(model.output)];
  for (const std::uint8_t value : outputs.values<std::uint8_t>()) expected.push_back(value);
  return expected;
}

/// Models as C, and a program that prints of each the self test's result, the instructions of an example, the outputs'
/// zero point and the bits of their scale, and the outputs. Of a model with a front end the example is a sound, and
/// behind the outputs stands their class.
class Board {
 public:
  void add(const std::string& prefix, const Model& model, const std::optional<CFrontEnd>& front_end = {}) {
    Random random(models_.size());
    const Tensor images = random_images(random, model, kImages);
    const CSource c = c_source(model, prefix, prefix + ".h", images, {}, "", front_end);
    directory_.write(prefix + ".h", c.header);
    directory_.write(prefix + ".c", c.source);
    models_[prefix] = {.model = model, .images = images, .footprint = c.footprint, .front_end = front_end};
  }
  const std::map<std::string, Exported>& models() const { return models_; }

  /// What the program prints by model; empty when it does not compile or end well.
  std::map<std::string, std::vector<long>> run(const Target& target, const std::string& flags = "") {
    directory_.write("main.c", main());
    std::string sources = "main.c";
    for (const auto& [prefix, exported] : models_) sources += " " + prefix + ".c";
    std::istringstream lines(output_of(in_place(std::string(kBoards) + "/build " + target.name + " program " + sources +
                                                " " + testing::kStrict + " -Os " + flags) +
                                       " && " + kBoards + "/run " + target.name + " program"));
    std::map<std::string, std::vector<long>> results;
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string prefix;
      words >> prefix;
      for (long number = 0; words >> number;) results[prefix].push_back(number);
    }
    return results;
  }

  /// The functions of the compiler's library for floating point that a model's object file calls; "none".
  std::string float_calls(const Target& target, const std::string& prefix) {
    return output_of(in_place(target.tools[0] + " -c -Os " + compile_flags(target) + " -o object.o " + prefix +
                              ".c && { " + target.tools[1] +
                              " -u object.o | grep -E '__aeabi_[fd]|__[a-z]*[sd]f' || echo none; }"));
  }

  /// The sizes of what lies in a model's object file, by kind of memory: flash ("r", "R") and RAM ("b"), without code.
  CFootprint compiled(const Target& target, const std::string& prefix) {
    std::istringstream lines(output_of(in_place(
        target.tools[0] + " -c -fdata-sections -fno-jump-tables " + compile_flags(target) + " -DNO_SELF_TEST -D" +
        upper(prefix) + "_NO_SELF_TEST -o object.o " + prefix + ".c && " + target.tools[1] + " -S object.o")));
    CFootprint sizes;
    std::string address, size, kind, name;
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      if (!(words >> address >> size >> kind >> name)) continue;
      const long bytes = std::strtol(size.c_str(), nullptr, 16);
      if (kind == "b") (name == "arena" ? sizes.arena : sizes.scratch) += bytes;
      if (kind == "r" || kind == "R") (name.starts_with("weights_") ? sizes.weights : sizes.constants) += bytes;
    }
    return sizes;
  }

 private:
  static std::string upper(std::string text) {
    for (char& c : text) c = static_cast<char>(std::toupper(c));
    return text;
  }
  static std::string compile_flags(const Target& target) {
    return target.name == "cortex-m4" ? "-mcpu=cortex-m4 -mthumb"
                                      : "-march=rv32imac -mabi=ilp32 -msmall-data-limit=0 --specs=picolibc.specs";
  }
  std::string in_place(const std::string& command) const {
    return "cd '" + directory_.path().string() + "' && " + command;
  }

  static std::string array(const std::string& type, const std::string& name, const auto& values) {
    std::string text = "static const " + type + " " + name + "[] = {";
    for (const auto value : values) text += std::to_string(value) + ",";
    return text + "};\n";
  }

  /// Of one model: the examples, what runs it whatever it returns, and the call that prints it.
  static std::string part_of_main(const std::string& prefix, const Exported& exported, std::string& calls) {
    const std::string macro = upper(prefix), examples = prefix + "_examples";
    const bool is_sound = exported.front_end.has_value();
    std::string text = "#include \"" + prefix + ".h\"\n";
    if (is_sound) {
      const FixedFrontEnd front_end(*exported.front_end, exported.model);
      text += array("int16_t", examples, front_end.test_sound());
    } else {
      text += array("uint8_t", examples, exported.images.values<std::uint8_t>());
    }
    text += "static int run_" + prefix + "(int32_t i, uint8_t *y) {\n  (void)i;\n  ";
    const std::string run = is_sound ? prefix + "_run_sound(" + examples + ", y)"
                                     : prefix + "_run(" + examples + " + i * " + macro + "_INPUT_SIZE, y)";
    text += exported.model.task.empty() ? "return " + run + ";\n}\n" : run + ";\n  return 0;\n}\n";
    calls += "  print_model(\"" + prefix + "\", " + prefix + "_self_test()" +
             (is_sound ? " + 1000 * " + prefix + "_sound_self_test()" : "") + ", run_" + prefix + ", " +
             std::to_string(is_sound ? 1 : kImages) + ", " + macro + "_OUTPUT_SIZE, " + macro + "_OUTPUT_ZERO_POINT, " +
             macro + "_OUTPUT_SCALE, " + (is_sound ? "1" : "0") + ");\n";
    return text;
  }

  std::string main() const {
    std::string parts = "#include <string.h>\n#include \"board.h\"\n", calls;
    for (const auto& [prefix, exported] : models_) parts += part_of_main(prefix, exported, calls);
    return parts + R"c(
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
)c" + calls +
           "  return 0;\n}\n";
  }

  testing::TempDir directory_;
  std::map<std::string, Exported> models_;
};

class Emulated : public ::testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    const std::string missing = missing_tools(target());
    if (!missing.empty()) GTEST_SKIP() << "no " << missing << "; scripts/install-deps --ci installs what is missing";
  }
  const Target& target() const { return kTargets[GetParam()]; }
};

TEST_P(Emulated, GivesTheIntegersOfTheReference) {
  Board board;
  for (const int bits : {8, 4, 2})
    board.add("w" + std::to_string(bits), testing::random_network(20 + bits, {.only_bits = bits}));
  board.add("any", testing::random_network(5));
  RandomModel lookup(6, {6, 5, 3});
  lookup.conv2d(1);
  lookup.lookup();
  lookup.mul(lookup.last(), lookup.last());
  board.add("single", lookup.finish());

  const auto results = board.run(target(), "-DW4_WEIGHTS_SECTION='__attribute__((section(\".weights\")))'");
  ASSERT_EQ(results.size(), board.models().size());
  for (const auto& [prefix, exported] : board.models())
    EXPECT_EQ(results.at(prefix), expected_of(exported, exported.images, results.at(prefix).at(1))) << prefix;
}

/// Integers with their zero point and scale instead of a class.
TEST_P(Emulated, GivesNumbersOfOtherTasks) {
  Board board;
  for (const char* task : {"regress", "reconstruct", "multilabel"}) {
    RandomModel net(9 + task[0], {6, 4});
    net.reshape({24});
    net.fully_connected(8);
    net.fully_connected(std::string(task) == "reconstruct" ? 24 : 3);
    Model model = net.finish();
    model.task = task;
    board.add(task, model);
  }
  const auto results = board.run(target());
  ASSERT_EQ(results.size(), board.models().size());
  for (const auto& [prefix, exported] : board.models())
    EXPECT_EQ(results.at(prefix), expected_of(exported, exported.images, results.at(prefix).at(1))) << prefix;
}

TEST_P(Emulated, GoesFromSamplesToAClass) {
  Board board;
  for (const auto& [name, options] : testing::kSounds) board.add(name, testing::sound_model(options), options);
  const auto results = board.run(target());
  ASSERT_EQ(results.size(), board.models().size());
  for (const auto& [prefix, exported] : board.models()) {
    const FixedFrontEnd front_end(*exported.front_end, exported.model);
    const Tensor input =
        Tensor::from<std::uint8_t>(integer::batch_shape(1, exported.model.tensor(exported.model.input).shape),
                                   front_end.features(front_end.test_sound()));
    std::vector<long> expected = expected_of(exported, input, results.at(prefix).at(1));
    const auto outputs = expected.begin() + 4;
    expected.push_back(std::max_element(outputs, expected.end()) - outputs);
    EXPECT_EQ(results.at(prefix), expected) << prefix;
    std::printf("%s %s: %ld instructions from %ld samples to a class\n", target().name.c_str(), prefix.c_str(),
                expected[1], static_cast<long>(exported.front_end->samples()));
    EXPECT_EQ(board.float_calls(target(), prefix), "none\n") << "floating point is not there";
  }
}

/// The weights of a filter are unpacked once, not for each row of the output: some instructions for each
/// multiplication.
TEST_P(Emulated, FewInstructions) {
  Board board;
  for (const int bits : {8, 4, 2}) {
    RandomModel net(3, {96, 3, 8}, {.only_bits = bits, .plain_windows = true});
    net.conv2d(16);
    board.add("w" + std::to_string(bits), net.finish());
  }
  constexpr double kMost = 7;
  const auto results = board.run(target());
  ASSERT_EQ(results.size(), board.models().size());
  for (const auto& [prefix, exported] : board.models()) {
    const double each = static_cast<double>(results.at(prefix).at(1)) / exported.model.multiply_adds();
    std::printf("%s %s: %.2f instructions for each of %ld multiply-adds\n", target().name.c_str(), prefix.c_str(), each,
                static_cast<long>(exported.model.multiply_adds()));
    EXPECT_GT(each, 1) << prefix;
    EXPECT_LT(each, kMost) << prefix;
  }
}

TEST_P(Emulated, MemoryIsAsStated) {
  Board board;
  board.add("all", testing::random_network(7));
  RandomModel curve(8, {6, 5, 3});
  curve.lookup();
  curve.mul(curve.last(), curve.last());
  Model numbers = curve.finish();
  numbers.input_standard = Standard{.mean = {1, 2, 3}, .deviation = {4, 5, 6}};
  board.add("curve", numbers);
  for (const auto& [name, options] : testing::kSounds) board.add(name, testing::sound_model(options), options);
  for (const auto& [prefix, exported] : board.models()) {
    const CFootprint stated = exported.footprint, found = board.compiled(target(), prefix);
    EXPECT_EQ(found.weights, stated.weights) << prefix;
    EXPECT_EQ(found.constants, stated.constants) << prefix;
    EXPECT_EQ(found.arena, stated.arena) << prefix;
    EXPECT_EQ(found.scratch, stated.scratch) << prefix;
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Emulated,
                         ::testing::Range<std::size_t>(0, testing::tries_all_cases() ? kTargets.size() : 1),
                         [](const auto& info) { return std::string(info.param == 0 ? "CortexM4" : "Rv32imac"); });

}  // namespace
}  // namespace miniqat::exporters::emulated_test
