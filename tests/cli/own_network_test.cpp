// docs/own-network.md: its forms of one network are the same network, and its commands run.

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <regex>
#include <string>

#include "core/engine/session.h"
#include "core/graph/graph_json.h"
#include "core/graph/source_ops.h"
#include "core/text/error.h"
#include "datasets/known_datasets.h"
#include "importers/onnx/import.h"
#include "layers/layers.h"
#include "tests/cli/program.h"
#include "tests/datasets/dataset_files.h"
#include "tests/fewer_cases.h"
#include "tests/source_dir.h"
#include "tests/temp_dir.h"

namespace miniqat::testing::own_network_test {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = source_dir();

/// The only block of the page in this language.
std::string block(const std::string& language) {
  const std::string page = bytes_of(kRoot / "docs/own-network.md"), begin = concat("```", language, "\n");
  const std::size_t from = page.find(begin);
  EXPECT_NE(from, page.npos) << language;
  EXPECT_EQ(page.find(begin, from + 1), page.npos) << "a second block of " << language;
  const std::size_t start = from + begin.size();
  return page.substr(start, page.find("```\n", start) - start);
}

/// Runs lines in a shell that ends at the first failure and finds the program as `miniqat`.
int run_in_shell(const TempDir& place, const std::string& lines) {
  const fs::path script = place.write("lines.sh", lines);
  const std::string folder = fs::path(program_path()).parent_path();
  const std::string command =
      concat("cd '", place.path().string(), "' && PATH='", folder, "':$PATH bash -eu lines.sh > out.txt 2> err.txt");
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Goes from an output of both graphs to their inputs: the same ops with the same shapes, joined in the same way. Notes
/// the variables of the first under their names in the second.
void expect_same(Output left, Output right, std::map<std::string, std::string>& variables) {
  const Node &a = *left.node, &b = *right.node;
  ASSERT_EQ(a.type(), b.type()) << a.name() << " and " << b.name();
  ASSERT_EQ(left.shape(), right.shape()) << a.name() << " and " << b.name();
  ASSERT_EQ(a.inputs().size(), b.inputs().size()) << a.name() << " and " << b.name();
  if (a.as<miniqat::Variable>() != nullptr) {
    const auto [place, is_new] = variables.emplace(b.name(), a.name());
    ASSERT_TRUE(is_new || place->second == a.name()) << b.name();
  }
  for (std::size_t i = 0; i < a.inputs().size(); ++i) expect_same(a.inputs()[i], b.inputs()[i], variables);
}

TEST(OwnNetwork, ThePageShowsTheFile) { EXPECT_EQ(block("json"), bytes_of(kRoot / "examples/residual.json")); }

/// The file that PyTorch wrote becomes the network of the page: padding is spelled otherwise, and some names.
TEST(OwnNetwork, TheOnnxFileIsTheSameNetwork) {
  layers::register_ops();
  Graph graph = read_graph(kRoot / "examples/residual.json");
  importers::ImportedModel imported = importers::import_onnx(kRoot / "examples/residual.onnx");
  std::map<std::string, std::string> names;
  ASSERT_EQ(graph.nodes().size(), imported.graph.nodes().size());
  ASSERT_NO_FATAL_FAILURE(expect_same(graph.outputs().at(0), imported.graph.outputs().at(0), names));
  EXPECT_EQ(names.size(), 8u);

  Session session(graph), other(imported.graph);
  for (const auto& [in_file, on_page] : names) {
    other.set_variable(in_file, imported.variables.at(in_file));
    session.set_variable(on_page, imported.variables.at(in_file));
  }
  const Output pictures = graph.find("images")->output();
  Tensor images(pictures.shape());
  std::mt19937 random(5);
  for (float& pixel : images.values<float>()) pixel = std::uniform_real_distribution<float>(0, 1)(random);
  const Tensor y = session.run({.fetches = graph.outputs()}, {{pictures, images}}).fetched[0];
  const Feeds feeds = {{imported.graph.find("images")->output(), images}};
  const Tensor z = other.run({.fetches = imported.graph.outputs()}, feeds).fetched[0];
  double largest = 0, difference = 0;
  for (std::size_t i = 0; i < y.values<float>().size(); ++i) {
    largest = std::max<double>(largest, std::abs(y.values<float>()[i]));
    difference = std::max<double>(difference, std::abs(y.values<float>()[i] - z.values<float>()[i]));
  }
  EXPECT_GT(largest, 0.01);
  EXPECT_LE(difference, 1e-6 * largest);
}

/// `line` with these flags behind a word that it has, but on all digits where there is time for them.
std::string on_few_digits(std::string lines, const std::string& word, const std::string& flags) {
  if (tries_all_cases()) return lines;
  EXPECT_NE(lines.find(word), lines.npos) << lines;
  return lines.insert(lines.find(word) + word.size(), flags);
}

/// Of the pictures that the commands take in full.
void write_few_digits(const TempDir& place) {
  write_npz_file(place.path() / "few.npz", datasets::load("synthetic", {}, {.train_size = 2560, .test_size = 200}));
}

TEST(OwnNetwork, TheCommandsOfThePageRun) {
  const TempDir place;
  place.write("residual.json", block("json"));
  write_few_digits(place);
  const std::string lines = on_few_digits(block("sh"), "--float", " --dataset few.npz");
  EXPECT_EQ(run_in_shell(place, lines), 0) << bytes_of(place.path() / "err.txt");
  const std::string out = bytes_of(place.path() / "out.txt");
  EXPECT_NE(out.find("24 nodes, 0 quantizers, 12650 trainable parameters"), out.npos) << out;
  const std::regex table(R"(\nintegers  +(\d+\.\d\d)% )");
  std::smatch row;
  ASSERT_TRUE(std::regex_search(out, row, table)) << out;
  EXPECT_GT(std::stod(row[1]), tries_all_cases() ? 90 : 15);
  for (const std::string file : {"residual.c", "residual.h"}) EXPECT_TRUE(fs::exists(place.path() / file)) << file;
}

/// What `miniqat models` says of a network of one's own is a command that works, and a page that there is.
TEST(OwnNetwork, ModelsSaysHowToBeginOne) {
  const TempDir place;
  const Outcome models = expect_success(miniqat("models"));
  const std::regex line(R"(\n  (miniqat [^\n]*))");
  std::string commands;
  int count = 0;
  for (std::sregex_iterator match(models.out.begin(), models.out.end(), line); match != std::sregex_iterator(); ++match)
    commands += (*match)[1].str() + (++count == 3 ? " --stop-at 1\n" : "\n");
  EXPECT_EQ(count, 3) << models.out;
  write_few_digits(place);
  commands = on_few_digits(commands, "train", " --dataset few.npz");
  EXPECT_EQ(run_in_shell(place, commands), 0) << commands << bytes_of(place.path() / "err.txt");
  EXPECT_TRUE(fs::exists(place.path() / "mine.json"));
  std::smatch page;
  ASSERT_TRUE(std::regex_search(models.out, page, std::regex(R"((docs/[\w-]+\.md))"))) << models.out;
  EXPECT_TRUE(fs::exists(kRoot / page[1].str())) << page[1];
}

}  // namespace
}  // namespace miniqat::testing::own_network_test
