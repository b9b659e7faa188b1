// The C that is generated, compiled for a Cortex-M4 and a 32-bit RISC-V and run on the boards that QEMU emulates.

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <map>
#include <sstream>

#include "core/files/files.h"
#include "exporters/c/source.h"
#include "integer/reference/engine.h"
#include "tests/exporters/c/c_project.h"
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
};

/// Models as C, and a program that prints of each the self test's result, the outputs, and the instructions of a
/// picture.
class Board {
 public:
  void add(const std::string& prefix, const Model& model) {
    Random random(models_.size());
    const Tensor images = random_images(random, model, kImages);
    const CSource c = c_source(model, prefix, prefix + ".h", images);
    directory_.write(prefix + ".h", c.header);
    directory_.write(prefix + ".c", c.source);
    models_[prefix] = {.model = model, .images = images, .footprint = c.footprint};
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

  std::string main() const {
    std::string includes = "#include \"board.h\"\n", data, calls;
    for (const auto& [prefix, exported] : models_) {
      const std::string size = upper(prefix) + "_INPUT_SIZE", images = prefix + "_images";
      includes += "#include \"" + prefix + ".h\"\n";
      data += "static const uint8_t " + images + "[" + std::to_string(kImages) + " * " + size + "] = {";
      for (const std::uint8_t value : exported.images.values<std::uint8_t>()) data += std::to_string(value) + ",";
      data += "};\n";
      calls += "  print_model(\"" + prefix + "\", " + prefix + "_self_test(), " + prefix + "_run, " + images + ", " +
               size + ", " + upper(prefix) + "_OUTPUT_SIZE);\n";
    }
    return includes + data + R"c(
static void print_model(const char *name, int self_test, int (*run)(const uint8_t *, uint8_t *), const uint8_t *images,
                        uint32_t inputs, uint32_t outputs) {
  static uint8_t output[4096];
  const uint32_t start = board_instructions();
  run(images, output);
  const uint32_t end = board_instructions();
  board_print(name);
  board_print(" ");
  board_number((uint32_t)self_test);
  board_print(" ");
  board_number(end - start);
  for (uint32_t i = 0; i < )c" +
           std::to_string(kImages) + R"c(; ++i) {
    run(images + i * inputs, output);
    for (uint32_t k = 0; k < outputs; ++k) {
      board_print(" ");
      board_number(output[k]);
    }
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
  for (const auto& [prefix, exported] : board.models()) {
    std::vector<long> expected = {0, results.at(prefix).at(1)};
    const Tensor outputs = integer::reference::run(exported.model, exported.images)[exported.model.output];
    for (const std::uint8_t value : outputs.values<std::uint8_t>()) expected.push_back(value);
    EXPECT_EQ(results.at(prefix), expected) << prefix;
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
