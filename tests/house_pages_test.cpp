// The house rules of pages: they name programs and files that there are, and the README's program is the example.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "core/text/error.h"
#include "tests/cli/program.h"
#include "tests/house_files.h"
#include "tests/source_dir.h"
#include "tests/temp_dir.h"

namespace miniqat::house_test {
namespace {

namespace fs = std::filesystem;

/// What a page shows of C++ is what is built and run.
void expect_shows(const std::string& page, const std::string& file) {
  const fs::path root = source_dir();
  std::vector<std::string> example;
  for (const std::string& line : lines_of(root / file)) example.push_back(without_indent(line));
  std::size_t shown = 0;
  auto place = example.begin();
  bool inside = false;
  for (const std::string& line : lines_of(root / page)) {
    if (line.starts_with("```")) {
      inside = line == "```cpp";
      continue;
    }
    if (!inside || line.empty()) continue;
    const auto found = std::find(place, example.end(), without_indent(line));
    ASSERT_TRUE(found != example.end()) << "not in " << file << ", or in another place: " << line;
    place = found + 1;
    ++shown;
  }
  EXPECT_GT(shown, 10u);
}

TEST(HousePages, TheReadmesProgramIsTheExample) { expect_shows("README.md", "examples/train_lenet.cpp"); }

TEST(HousePages, TheOwnNetworkIsTheExample) { expect_shows("docs/own-network.md", "examples/own_network.cpp"); }

/// The line that gives the program its short name works in every folder, and for a clone in any.
TEST(HousePages, TheAliasHoldsInAnyFolder) {
  for (const std::string page : {"README.md", "docs/train.md"}) {
    std::string alias;
    for (const std::string& line : lines_of(source_dir() / page))
      if (line.starts_with("alias ")) alias = line;
    ASSERT_FALSE(alias.empty()) << page;
    const testing::TempDir place;
    const fs::path folder = place.path() / "my clone/build/release/cli";
    fs::create_directories(folder);
    fs::create_symlink(testing::program_path(), folder / "miniqat");
    place.write("lines.sh", concat("shopt -s expand_aliases\ncd 'my clone'\n", alias, "\ncd /\nminiqat --version\n"));
    const testing::Outcome outcome =
        testing::Program(testing::Program::Line{{"/bin/bash", "lines.sh"}}, place.path()).wait();
    EXPECT_EQ(outcome.status, 0) << page << ": " << outcome.err;
    EXPECT_TRUE(outcome.out.starts_with("miniqat ")) << outcome.out;
  }
}

/// What the first group of the pattern matches, wherever the pattern matches a line of the page.
std::vector<std::string> mentions(const fs::path& page, const std::string& pattern) {
  const std::regex expression(pattern);
  std::vector<std::string> found;
  for (const std::string& line : lines_of(page))
    for (std::sregex_iterator match(line.begin(), line.end(), expression); match != std::sregex_iterator(); ++match)
      found.push_back((*match)[1]);
  return found;
}

/// The targets that CMakeLists.txt files make of sources, as "folder/target": binaries lie in build/<preset>/<folder>/.
std::set<std::string> programs() {
  std::set<std::string> found = {"cli/miniqat", "labs/labs_test", "tests/miniqat_differential", "tests/test_others"};
  const fs::path tests = source_dir() / "tests";
  for (const fs::directory_entry& entry : fs::directory_iterator(tests))
    if (fs::exists(entry.path() / "CMakeLists.txt"))
      for (const std::string& program : mentions(entry.path() / "CMakeLists.txt", "miniqat_tests\\((\\w+)"))
        found.insert("tests/" + program);
  for (const fs::directory_entry& entry : fs::directory_iterator(source_dir() / "labs"))
    if (entry.is_directory()) found.insert("labs/lab_" + entry.path().filename().string().substr(0, 2));
  for (const std::string folder : {"benchmarks", "examples", "experiments"})
    for (const fs::path& file : sources(folder)) {
      const std::string stem = file.stem();
      const bool has_main = folder == "examples" || stem.starts_with("bench_") || stem.starts_with("peer_");
      if (has_main && file.extension() == ".cpp") found.insert(concat(folder, "/", stem));
    }
  return found;
}

std::vector<fs::path> pages() {
  const fs::path root = source_dir();
  std::vector<fs::path> files = {root / "README.md", root / "CONTRIBUTING.md"};
  for (const std::string folder : {"docs", "labs"})
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / folder))
      if (entry.path().extension() == ".md") files.push_back(entry.path());
  return files;
}

TEST(HousePages, PagesNameProgramsThatThereAre) {
  const std::set<std::string> known = programs();
  std::set<std::string> targets;
  for (const std::string& program : known) targets.insert(program.substr(program.find('/') + 1));
  std::size_t checked = 0;
  const auto expect_all = [&](const fs::path& page, const std::string& pattern, const std::set<std::string>& names) {
    for (const std::string& name : mentions(page, pattern)) {
      EXPECT_TRUE(names.contains(name)) << page << " names " << name;
      ++checked;
    }
  };
  for (const fs::path& page : pages()) {
    expect_all(page, R"(build/(?:release|dev|asan-ubsan)/(\w+/\w+))", known);
    for (const std::string& list : mentions(page, R"(--target((?: +\w+)+))")) {
      std::istringstream words(list);
      for (std::string name; words >> name; ++checked) EXPECT_TRUE(targets.contains(name)) << page << " names " << name;
    }
    expect_all(page, R"(\b((?:bench|peer)_\w+))", targets);
  }
  EXPECT_GT(checked, 0u);
}

/// The commands of the page's blocks that begin with `miniqat`, lines joined where a \ ends one, without comments and
/// what follows in a pipe.
std::vector<std::string> commands_of(const fs::path& page) {
  std::vector<std::string> found;
  bool inside = false, goes_on = false;
  for (const std::string& line : lines_of(page)) {
    if (line.starts_with("```")) inside = !inside;
    if (!inside || !(goes_on || line.starts_with("miniqat "))) continue;
    const bool cut = line.ends_with('\\');
    std::size_t end = line.size() - cut;
    for (const std::string mark : {" # ", " | ", " > ", " 2> "}) end = std::min(end, line.find(mark));
    if (!goes_on) found.emplace_back();
    found.back() += line.substr(0, end);
    goes_on = cut;
  }
  return found;
}

TEST(HousePages, PagesNameFlagsThatThereAre) {
  const std::regex flag(R"((?:^|[ ,\[])(--?[a-z][a-z0-9-]*))");
  const auto flags_in = [&](const std::string& text) {
    std::set<std::string> found;
    for (std::sregex_iterator match(text.begin(), text.end(), flag); match != std::sregex_iterator(); ++match)
      found.insert((*match)[1]);
    return found;
  };
  std::map<std::string, std::set<std::string>> known;
  std::size_t checked = 0;
  for (const fs::path& page : pages())
    for (const std::string& line : commands_of(page)) {
      const std::string command = line.substr(8, line.find(' ', 8) - 8);
      if (command.ends_with(':')) continue;  // What the program has printed.
      if (!known.contains(command))
        known[command] = flags_in(testing::miniqat(command.starts_with('-') ? testing::Arguments{"--help"}
                                                                            : testing::Arguments{command, "--help-all"})
                                      .out);
      for (const std::string& name : flags_in(line)) {
        EXPECT_TRUE(known[command].contains(name)) << page << " has " << name << " in " << line;
        ++checked;
      }
    }
  EXPECT_GT(checked, 500u);
}

/// The program of tests/CMakeLists.txt that has the test file `file`, relative to tests/.
std::string program_with(const std::string& file) {
  static const std::set<std::string> known = programs();
  const std::string own = "tests/test_" + file.substr(0, file.find('/'));
  return known.contains(own) ? own : "tests/test_others";
}

/// A command with --file or --gtest_filter runs tests: the wrong program, or a name that is gone, runs none.
TEST(HousePages, PagesNameTestsThatThereAre) {
  const fs::path tests = source_dir() / "tests";
  std::set<std::string> names;
  const std::regex begins_test(R"((?:TYPED_)?TEST(?:_[FP])?\((\w+), (\w+)\).*)");
  for (const fs::path& file : sources("tests"))
    for (const std::string& line : lines_of(file))
      if (std::smatch test; line.find("TEST") < 7 && std::regex_match(line, test, begins_test))
        names.insert(program_with(fs::relative(file, tests)) + " " + test[1].str() + "." + test[2].str());
  const std::regex command(R"((tests/test_\w+) --(file|gtest_filter)=([^ `]+))");
  std::size_t checked = 0;
  for (const fs::path& page : pages())
    for (const std::string& line : lines_of(page)) {
      std::smatch found;
      if (line.find("--file=") == std::string::npos && line.find("--gtest_filter=") == std::string::npos) continue;
      ASSERT_TRUE(std::regex_search(line, found, command)) << page << " has " << line;
      for (std::sregex_iterator match(line.begin(), line.end(), command); match != std::sregex_iterator(); ++match) {
        const std::string program = (*match)[1], wanted = (*match)[3];
        ++checked;
        if ((*match)[2] == "file") {
          EXPECT_TRUE(fs::exists(tests / wanted)) << page << " names " << wanted;
          EXPECT_EQ(program, program_with(wanted)) << page << " runs " << wanted;
          continue;
        }
        std::string pattern;
        for (const char letter : wanted)
          if (letter != '\'') pattern += letter == '*' ? ".*" : std::string(letter == '.' ? "\\" : "") + letter;
        const std::regex filter(concat(program, " ", pattern));
        EXPECT_TRUE(std::ranges::any_of(names, [&](const auto& name) { return std::regex_match(name, filter); }))
            << page << " names " << wanted << ", which no test of " << program << " has";
      }
    }
  EXPECT_GT(checked, 10u);
}

/// The one that the reader is to write (docs/own-kernel.md).
const std::set<std::string> kFilesThatNeedNotBe = {"bench/kernels/my_kernel.cpp"};

/// C's, and what `export` writes.
const std::set<std::string> kOtherHeaders = {"lenet.h", "stddef.h", "stdint.h", "string.h"};

std::set<std::string> names_of_sources() {
  std::set<std::string> names;
  for (const std::string& top : top_entries())
    if (!top.starts_with('.'))
      for (const fs::path& file : sources(top)) names.insert(file.filename().string());
  return names;
}

TEST(HousePages, PagesNameFilesThatThereAre) {
  const fs::path root = source_dir();
  const std::set<std::string> tops = top_entries(), names = names_of_sources();
  std::vector<fs::path> all = pages();
  all.push_back(root / "CHANGELOG.md");
  std::size_t checked = 0;
  std::set<std::string> missing;
  for (const fs::path& page : all) {
    for (const std::string& file : mentions(page, R"(`([\w.]+/[\w/.-]+)`)")) {
      // Names of nodes and of what a run leaves look like paths, too.
      if (!tops.contains(file.substr(0, file.find('/')))) continue;
      ++checked;
      if (fs::exists(root / file)) continue;
      missing.insert(file);
      EXPECT_TRUE(kFilesThatNeedNotBe.contains(file)) << page << " names " << file;
    }
    for (const std::string& file : mentions(page, R"(`(\w+\.(?:h|cpp))`)"))
      EXPECT_TRUE(names.contains(file) || kOtherHeaders.contains(file)) << page << " names " << file;
    for (const std::string& link : mentions(page, R"(\]\(([\w./-]+)[)#])")) {
      EXPECT_TRUE(fs::exists(page.parent_path() / link)) << page << " links to " << link;
      ++checked;
    }
  }
  EXPECT_EQ(missing, kFilesThatNeedNotBe) << "an exception for nothing";
  EXPECT_GT(checked, 300u);
}

}  // namespace
}  // namespace miniqat::house_test
