// docs/integer-model.md: its file is the one that is written, its program reads what is written.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "core/files/files.h"
#include "core/text/json.h"
#include "exporters/json.h"
#include "integer/format/model_file.h"
#include "integer/reference/engine.h"
#include "tests/integer/random_model.h"
#include "tests/source_dir.h"
#include "tests/temp_dir.h"

namespace miniqat::integer::model_page_test {
namespace {

std::string page() { return read_file(source_dir() / "docs/integer-model.md"); }

/// The lines of every block of the page that begins with ```language.
std::vector<std::string> blocks(const std::string& language) {
  std::istringstream lines(page());
  std::vector<std::string> found;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line == "```" + language) {
      inside = true;
      found.emplace_back();
    } else if (line == "```") {
      inside = false;
    } else if (inside) {
      found.back() += line + "\n";
    }
  }
  return found;
}

/// The bytes of lines of offset, bytes and explanation, two blanks between them.
std::string bytes_of_dump(const std::string& dump) {
  std::istringstream lines(dump);
  std::string bytes;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_EQ(std::stoul(line, nullptr, 16), bytes.size()) << line;
    std::istringstream pairs(line.substr(5, line.find("  ", 5) - 5));
    for (std::string pair; pairs >> pair;) bytes += static_cast<char>(std::stoul(pair, nullptr, 16));
  }
  return bytes;
}

std::string without_line_breaks(const std::string& text) {
  std::istringstream lines(text);
  std::string joined;
  for (std::string line; std::getline(lines, line);) joined += line.substr(line.find_first_not_of(' '));
  return joined;
}

Model tiny() {
  const Layer layer{.kind = LayerKind::kFullyConnected,
                    .filter = {3, 2},
                    .weight_bits = 4,
                    .weights = {9, 2, 15, 8, 1, 12},
                    .weight_scales = {0.25f},
                    .weight_zero_points = {8},
                    .bias = {800, -1600},
                    .multipliers = {multiplier_for(0.5 * 0.25 / 8 / 2)}};
  return {.name = "tiny",
          .tensors = {{.name = "pixels", .shape = {3}, .grid = {.scale = 0.5f}},
                      {.name = "scores", .shape = {2}, .grid = {.scale = 2, .zero_point = 128}}},
          .operations = {{.name = "fc", .action = layer, .inputs = {0}, .output = 1}},
          .output = 1};
}

TEST(IntegerModelPage, ShowsTheFileByteByByte) {
  const std::vector<std::string> dumps = blocks("hexdump"), headers = blocks("header");
  ASSERT_EQ(dumps.size(), 2u);
  ASSERT_EQ(headers.size(), 1u);
  const std::string shown = bytes_of_dump(dumps[0]) + without_line_breaks(headers[0]) + bytes_of_dump(dumps[1]);
  const std::string bytes = to_bytes(tiny());
  EXPECT_EQ(shown, bytes);
  const std::string sizes = std::to_string(without_line_breaks(headers[0]).size()) + " bytes and a blob of " +
                            std::to_string(bytes_of_dump(dumps[1]).size() - 4);
  EXPECT_NE(page().find(sizes), std::string::npos) << sizes;
}

TEST(IntegerModelPage, WorksOutTheFirstScore) {
  const Tensor pixels = Tensor::from<std::uint8_t>({1, 3}, std::vector<std::uint8_t>{10, 20, 30});
  EXPECT_EQ(reference::run(tiny(), pixels)[1].values<std::uint8_t>()[0], 131);
}

TEST(IntegerModelPage, ItsProgramReadsFiles) {
  if (std::system("/usr/bin/python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null") != 0)
    GTEST_SKIP() << "Python 3.9 is not installed";
  const testing::TempDir directory;
  const std::vector<std::string> programs = blocks("python");
  ASSERT_EQ(programs.size(), 1u);
  EXPECT_LE(std::ranges::count(programs[0], '\n'), 30);
  directory.write("read.py", programs[0]);
  for (std::uint64_t seed = 0; seed < 2; ++seed) {
    const Model model = testing::random_network(seed);
    directory.write("model.miniqat", to_bytes(model));
    const std::string command =
        "cd '" + directory.path().string() + "' && /usr/bin/python3 read.py model.miniqat > model.json";
    ASSERT_EQ(std::system(command.c_str()), 0);
    nlohmann::json exported = nlohmann::json::parse(exporters::json(model));
    exported.erase("format");
    exported.erase("version");
    EXPECT_EQ(nlohmann::json::parse(read_file(directory.path() / "model.json")), exported) << seed;
  }
}

}  // namespace
}  // namespace miniqat::integer::model_page_test
