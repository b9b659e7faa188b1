// The house rules that a compiler does not check: which folder may include which, who may use Eigen. The rules of
// pages: tests/house_pages_test.cpp; those of style: tests/house_style_test.cpp.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/house_files.h"
#include "tests/source_dir.h"

namespace miniqat::house_test {
namespace {

namespace fs = std::filesystem;

/// What "core" stands for in a rule.
const std::set<std::string> kBasicRooms = {"core/files",   "core/memory", "core/platform",
                                           "core/tensors", "core/text",   "core/threads"};

/// What the files right in a folder may include. A name that ends in '/' stands for a folder with all below it; the
/// rule of "folder/*" is for folders in it that have none of their own, and each of them may include itself, too.
const std::map<std::string, std::set<std::string>> kMayInclude = {
    {"core/text", {"core/text"}},
    {"core/platform", {"core/platform", "core/text"}},
    {"core/memory", {"core/memory", "core/text"}},
    {"core/tensors", {"core/memory", "core/tensors", "core/text"}},
    {"core/files", {"core/files", "core/platform", "core/tensors", "core/text"}},
    {"core/team", {"core/platform", "core/team", "core/text"}},
    {"core/threads", {"core/platform", "core/team", "core/text", "core/threads"}},
    {"core/graph", {"core", "core/graph"}},
    {"core/kernels", {"core", "core/kernels", "core/team"}},
    {"core/engine", {"core/"}},
    {"core/engine/plan", {"core", "core/graph", "core/engine/plan"}},
    {"layers", {"core", "core/graph", "core/kernels", "layers/"}},
    {"layers/chain", {"core/", "layers", "layers/chain", "layers/kernels"}},
    {"layers/kernels", {"core", "core/kernels", "layers/kernels"}},
    {"layers/reference", {"core", "layers/reference"}},
    {"integer", {"core", "integer", "integer/kernels", "integer/ops"}},
    {"integer/format", {"core", "integer", "integer/format"}},
    {"integer/kernels", {"core", "core/kernels", "integer", "integer/kernels"}},
    {"integer/ops", {"core", "core/kernels", "integer", "integer/kernels", "integer/ops"}},
    {"integer/reference", {"core", "integer", "integer/reference"}},
    // Its registry (quantize.h) and the summary of a graph (quantizers.cpp) know the rooms above it.
    {"quantize",
     {"core", "core/graph", "core/kernels", "layers", "layers/chain", "quantize", "quantize/fold", "quantize/kernels",
      "quantize/reference", "quantize/rewrite"}},
    {"quantize/calibrate", {"core/", "layers", "quantize", "quantize/fold", "quantize/rewrite", "quantize/calibrate"}},
    {"quantize/convert", {"core/", "layers", "integer", "quantize", "quantize/fold", "quantize/convert"}},
    {"quantize/fold",
     {"core", "core/graph", "core/kernels", "layers", "quantize", "quantize/reference", "quantize/fold"}},
    {"quantize/inspect", {"core", "core/graph", "layers", "quantize", "quantize/inspect"}},
    {"quantize/kernels", {"core", "core/kernels", "layers/kernels", "quantize", "quantize/kernels"}},
    {"quantize/reference", {"quantize", "quantize/reference"}},
    {"quantize/rewrite", {"core", "core/graph", "layers", "quantize", "quantize/fold", "quantize/rewrite"}},
    {"exporters", {"core", "integer", "integer/format", "exporters"}},
    {"exporters/c", {"core", "integer", "integer/reference", "exporters/c", "exporters/c/sound"}},
    {"exporters/html", {"core", "integer", "integer/format", "exporters/html"}},
    {"exporters/onnx", {"core", "core/graph", "layers", "integer", "formats/onnx", "exporters", "exporters/onnx"}},
    {"exporters/*", {"core", "integer", "exporters"}},
    {"importers/onnx", {"core", "core/graph", "layers", "formats/onnx", "importers/onnx"}},
    {"optim", {"core/", "optim"}},
    // user_files.cpp reads all formats of a user's own files.
    {"datasets", {"core/", "datasets/"}},
    {"datasets/arrays", {"core", "datasets", "datasets/arrays"}},
    {"datasets/pictures", {"core", "datasets", "datasets/pictures"}},
    {"datasets/sound", {"core/", "datasets", "datasets/sound"}},
    {"distributed", {"core/", "distributed"}},
    {"models", {"core/", "layers", "models"}},
    {"training", {"core/", "layers", "quantize", "datasets", "models", "importers/onnx", "training/task", "training"}},
    {"training/task", {"core/", "layers", "datasets", "training", "training/task"}},
    {"training/settings",
     {"core/", "quantize", "quantize/rewrite", "optim", "datasets/", "training", "training/task", "training/settings"}},
    {"training/run",
     {"core/", "integer/", "quantize", "quantize/convert", "importers/onnx", "datasets", "training", "training/task",
      "training/settings", "training/run"}},
    {"training/evaluate",
     {"core/", "integer/", "datasets", "training", "training/task", "training/run", "training/evaluate"}},
    {"training/verify", {"core/", "integer/", "datasets", "training", "training/run", "training/verify"}},
    {"training/calibrate",
     {"core/", "layers", "quantize", "quantize/calibrate", "quantize/fold", "quantize/rewrite", "datasets", "training",
      "training/settings", "training/run", "training/evaluate", "training/calibrate"}},
    {"training/train",
     {"core/", "layers", "quantize", "quantize/calibrate", "quantize/rewrite", "datasets", "training",
      "training/settings", "training/run", "training/evaluate", "training/calibrate", "training/train", "distributed"}},
    {"training/listing",
     {"core/", "quantize", "training/task", "training/settings", "training/run", "training/calibrate",
      "training/quantize", "training/listing"}},
    {"training/report",
     {"core/", "integer/", "quantize", "quantize/inspect", "quantize/rewrite", "datasets", "datasets/pictures",
      "training/"}},
    {"training/quantize",
     {"core/", "quantize", "quantize/calibrate", "quantize/rewrite", "datasets", "training", "training/settings",
      "training/run", "training/evaluate", "training/calibrate", "training/train", "training/quantize"}},
    {"bench",
     {"core/", "layers", "quantize/", "optim", "models", "bench", "bench/judge", "bench/kernels", "bench/measure"}},
    {"bench/judge", {"core/", "layers", "layers/chain", "layers/reference", "quantize", "bench/judge"}},
    {"bench/kernels", {"bench/kernels"}},
    {"bench/measure", {"core/", "bench/measure"}},
    {"bench/results", {"core/", "bench", "bench/measure", "bench/results"}},
    {"benchmarks",
     {"core/", "layers/", "integer/", "quantize/", "exporters/", "optim", "datasets", "models", "distributed", "bench/",
      "benchmarks"}},
    {"experiments",
     {"core/", "integer/", "quantize/", "exporters/", "distributed", "bench/", "benchmarks", "experiments"}},
    {"examples",
     {"core/", "layers", "quantize/convert", "quantize/rewrite", "exporters/tflite", "optim", "datasets", "training",
      "training/run", "training/verify"}},
    {"labs", {"labs"}},
    {"labs/*", {"core", "layers/reference", "quantize", "quantize/reference", "integer", "bench/kernels", "labs"}},
    {"labs/solutions", {"labs/"}},
    {"labs/tests", {"labs", "labs/tests"}},
    {"cli",
     {"core/", "layers", "integer/", "quantize/", "exporters/", "importers/", "datasets", "models", "training/",
      "distributed", "bench/", "cli/"}},
    {"cli/bench", {"core", "models", "training/settings", "bench/", "cli", "cli/bench", "cli/display", "cli/flags"}},
    {"cli/display",
     {"core/", "quantize", "quantize/calibrate", "quantize/inspect", "models", "training/", "cli", "cli/display"}},
    {"cli/flags", {"core", "quantize", "training/", "cli/display", "cli/flags"}},
    {"python/bindings",
     {"core/", "layers", "integer", "integer/format", "quantize", "quantize/calibrate", "quantize/convert",
      "quantize/rewrite", "exporters/", "importers/onnx", "optim", "datasets/", "models", "training/",
      "python/bindings"}},
};

/// The folder of ours that `#include "folder/file.h"` names; "" for any other line.
std::string included_folder(const std::string& line) {
  const std::string head = "#include \"";
  if (!line.starts_with(head)) return "";
  const fs::path file = line.substr(head.size());
  // A file without a folder is nothing that any rule allows.
  return file.has_parent_path() ? file.parent_path().string() : file.string();
}

/// The key of the rule for the files of `folder`.
std::string rule_for(const std::string& folder) {
  return kMayInclude.contains(folder) ? folder : (fs::path(folder).parent_path() / "*").string();
}

bool allows(const std::set<std::string>& allowed, const std::string& folder) {
  return std::ranges::any_of(allowed, [&](const std::string& name) {
    if (name == "core") return kBasicRooms.contains(folder);
    return name.ends_with('/') ? (folder + '/').starts_with(name) : folder == name;
  });
}

std::set<std::string> top_folders() {
  std::set<std::string> folders;
  for (const auto& [folder, allowed] : kMayInclude) folders.insert(folder.substr(0, folder.find('/')));
  return folders;
}

TEST(House, DependenciesPointOneWay) {
  std::set<std::string> seen;
  for (const std::string& top : top_folders())
    for (const fs::path& file : sources(top)) {
      const std::string folder = fs::relative(file.parent_path(), source_dir()).string();
      const auto rule = kMayInclude.find(rule_for(folder));
      ASSERT_TRUE(rule != kMayInclude.end()) << "there is no rule for " << folder;
      seen.insert(rule->first);
      for (const std::string& line : lines_of(file)) {
        const std::string included = included_folder(line);
        const bool own = rule->first.ends_with('*') && included == folder;
        EXPECT_TRUE(included.empty() || own || allows(rule->second, included)) << file << " must not have " << line;
      }
    }
  for (const auto& [folder, allowed] : kMayInclude) EXPECT_TRUE(seen.contains(folder)) << folder << " is empty";
}

/// A new top folder needs rules, too. Only tests may include anything.
TEST(House, EveryFolderOfSourcesHasRules) {
  const std::set<std::string> ruled = top_folders();
  for (const std::string& top : top_entries()) {
    const bool free_or_ruled = top.starts_with('.') || top == "tests" || ruled.contains(top);
    EXPECT_TRUE(free_or_ruled || sources(top).empty()) << "there is no rule for " << top;
  }
}

/// A header that needs itself is two concepts in one circle: neither can be read, or tested, before the other.
TEST(House, HeadersHaveNoCircle) {
  std::size_t headers = 0;
  for (const fs::path& file : all_sources()) {
    if (file.extension() != ".h") continue;
    EXPECT_FALSE(headers_behind(file).contains(file)) << file << " includes itself by way of others";
    ++headers;
  }
  EXPECT_GT(headers, 100u);
}

/// Stems on circles, by folder: the parts of a graph; a batch norm, a pool and the chains that run them with others as
/// one; a model, which has its operations, and these, which are checked within a model; the ops of a folded batch norm,
/// which find the layer around them by the roles of op types, and have such roles themselves.
const std::map<std::string, std::set<std::string>> kOnCircles = {
    {"core/graph", {"graph", "losses", "op", "op_interfaces", "source_ops"}},
    {"layers", {"batch_norm", "pool"}},
    {"layers/chain", {"chain", "chain_batch_norm", "chain_fusion"}},
    {"integer", {"model"}},
    {"integer/kernels", {"convolution", "depthwise", "product"}},
    {"integer/ops", {"index_map", "layer", "lookup", "operation_check", "pair", "pool"}},
    {"quantize", {"op_roles"}},
    {"quantize/fold", {"batch_norm_fold", "folded_layer"}},
};

/// A header with its source is one concept, a stem, which does not need itself by way of others.
TEST(House, StemsHaveNoCircle) {
  std::map<std::string, std::set<std::string>> needs, on_circles;
  for (const std::string& top : top_folders())
    for (const fs::path& file : sources(top)) {
      const std::string stem = fs::relative(file, source_dir()).replace_extension();
      for (const std::string& line : lines_of(file)) {
        if (included_folder(line).empty()) continue;
        const std::string other = fs::path(line.substr(10, line.rfind('"') - 10)).replace_extension();
        if (other != stem) needs[stem].insert(other);
      }
    }
  EXPECT_GT(needs.size(), 400u);
  for (const auto& [stem, others] : needs) {
    std::set<std::string> reached = others;
    std::vector<std::string> pending(others.begin(), others.end());
    while (!pending.empty()) {
      const auto next = needs.find(pending.back());
      pending.pop_back();
      if (next == needs.end()) continue;
      for (const std::string& other : next->second)
        if (reached.insert(other).second) pending.push_back(other);
    }
    const fs::path path = stem;
    if (reached.contains(stem)) on_circles[path.parent_path()].insert(path.filename());
  }
  EXPECT_EQ(on_circles, kOnCircles) << "a new stem needs itself by way of others, or one of the list no longer does";
}

/// A source that no list has is not compiled, and its tests do not run. (Checks and solutions of labs are found by the
/// name of their lab, and programs preload what tests/cli makes.)
TEST(House, EverySourceIsInAList) {
  std::map<fs::path, std::string> lists;
  for (const fs::path& file : all_sources()) {
    const std::string path = fs::relative(file, source_dir()).string();
    if (file.extension() != ".cpp" || path.starts_with("labs/solutions/") || path.starts_with("tests/preload/"))
      continue;
    if ((path.starts_with("labs/") && file.filename() == "check.cpp") || path == "experiments/replay.cpp") continue;
    bool listed = false;
    for (fs::path folder = file.parent_path(); folder != source_dir(); folder = folder.parent_path()) {
      if (!lists.contains(folder))
        for (const std::string& line : lines_of(folder / "CMakeLists.txt")) lists[folder] += line + "\n";
      listed =
          listed || lists[folder].find(fs::relative(file, folder).replace_extension().string()) != std::string::npos;
    }
    EXPECT_TRUE(listed) << path << " is in no CMakeLists.txt";
  }
}

TEST(House, EveryTestOfPythonIsInTheList) {
  const fs::path python = source_dir() / "python";
  std::string list;
  for (const std::string& line : lines_of(python / "CMakeLists.txt"))
    if (line.find("foreach(test ") != line.npos) list = line;
  std::size_t tests = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(python / "tests")) {
    const std::string stem = entry.path().stem().string();
    if (!stem.ends_with("_test")) continue;
    std::string name = " " + stem.substr(0, stem.size() - 5);
    EXPECT_TRUE(list.find(name + " ") != list.npos || list.find(name + ")") != list.npos) << entry.path();
    ++tests;
  }
  EXPECT_GT(tests, 5u);
}

/// CI configures no benchmarks, which a program that is gone would break.
TEST(House, EveryProgramOfTheWorkshopHasASource) {
  static const std::regex program(R"([ (]((?:bench|peer)_\w+))");
  std::size_t checked = 0;
  for (const char* folder : {"benchmarks", "experiments"}) {
    const fs::path place = source_dir() / folder;
    for (const std::string& line : lines_of(place / "CMakeLists.txt"))
      for (std::sregex_iterator found(line.begin(), line.end(), program); found != std::sregex_iterator(); ++found) {
        EXPECT_TRUE(fs::exists(place / ((*found)[1].str() + ".cpp"))) << folder << " has no " << (*found)[1];
        ++checked;
      }
  }
  EXPECT_GT(checked, 5u);
}

/// core/tensors/eigen.h says why.
TEST(House, EigenStaysInFormulas) {
  const fs::path door = source_dir() / "core/tensors/eigen.h";
  std::size_t includers = 0;
  for (const fs::path& file : all_sources()) {
    bool has_loops = false, has_eigen = false;
    for (const std::string& line : lines_of(file)) {
      has_loops = has_loops || line.starts_with("#define MINIQAT_LOOPS");
      has_eigen = has_eigen || line == "#include \"core/tensors/eigen.h\"";
      EXPECT_TRUE(file == door || !line.starts_with("#include <Eigen"))
          << file << " must include core/tensors/eigen.h instead";
    }
    EXPECT_FALSE(has_eigen && (has_loops || file.extension() == ".h")) << file;
    includers += has_eigen ? 1 : 0;
  }
  EXPECT_GT(includers, 0u);
}

/// Parallel loops are core/threads/parallel.h's; how a team of threads works is its own affair.
TEST(House, TheTeamHasOneDoor) {
  for (const fs::path& file : all_sources()) {
    const std::string folder = fs::relative(file.parent_path(), source_dir()).string();
    if (folder == "core/team" || folder.starts_with("tests")) continue;
    for (const std::string& line : lines_of(file))
      EXPECT_TRUE(included_folder(line) != "core/team" || line == "#include \"core/team/team.h\"")
          << file << " must not have " << line;
  }
}

/// core/text/classic.h says why. The program sets no locale, so that what it prints itself may go by printf().
TEST(House, LibrariesDoNotAskTheLocale) {
  static const std::regex asks(
      R"(std::(v?sn?printf|strto(d|f|ld)|atof|sto(d|f|ld)|to(lower|upper)|is(alpha|digit|alnum|space|upper|lower|print)|regex)\b)");
  static const std::regex sets(R"(\bsetlocale\(|locale::global)");
  const fs::path root = source_dir();
  for (const char* folder : {"core", "layers", "quantize", "integer", "exporters", "importers", "optim", "datasets",
                             "models", "distributed", "training", "python", "cli"})
    for (const fs::path& file : sources(folder)) {
      bool has_stream = false, has_classic = false;
      for (const std::string& line : lines_of(file)) {
        const std::string code = line.substr(0, line.find("//"));
        // (Regular expressions take their time.)
        if (code.find("std::") == code.npos && code.find("locale") == code.npos) continue;
        EXPECT_FALSE(std::regex_search(code, sets)) << file << " must not have " << line;
        if (folder == std::string("cli") || file == root / "core/text/classic.cpp") continue;
        EXPECT_FALSE(std::regex_search(code, asks))
            << file << " must not have " << line << "; core/text/classic.h has more";
        has_stream = has_stream || code.find("stringstream ") != std::string::npos;
        has_classic = has_classic || code.find("imbue(std::locale::classic())") != std::string::npos;
      }
      EXPECT_TRUE(!has_stream || has_classic) << file << " has a stream without std::locale::classic()";
    }
}

/// The arrows of a picture, as {from, to}.
std::set<std::pair<std::string, std::string>> arrows_of(const fs::path& picture) {
  const auto names = [](std::string list) {
    for (char& letter : list) letter = letter == '{' || letter == '}' || letter == ';' ? ' ' : letter;
    std::istringstream words(list);
    return std::vector<std::string>{std::istream_iterator<std::string>(words), {}};
  };
  std::set<std::pair<std::string, std::string>> arrows;
  for (const std::string& line : lines_of(picture))
    if (const std::size_t arrow = line.find(" -> "); arrow != std::string::npos && !line.starts_with("//"))
      for (const std::string& from : names(line.substr(0, arrow)))
        for (const std::string& to : names(line.substr(arrow + 4))) arrows.emplace(from, to);
  return arrows;
}

/// Every arrow is a rule, and every rule between top folders is an arrow or a way along arrows.
TEST(House, ThePictureShowsTheRules) {
  const auto top_of = [](const std::string& folder) { return folder.substr(0, folder.find('/')); };
  std::set<std::pair<std::string, std::string>> ruled;
  for (const auto& [folder, allowed] : kMayInclude)
    // Programs beside the house, which the picture leaves out.
    if (folder != "benchmarks" && folder != "examples" && folder != "experiments" && top_of(folder) != "labs")
      for (const std::string& included : allowed)
        if (top_of(included) != top_of(folder) && top_of(included) != "formats")
          ruled.emplace(top_of(included), top_of(folder));
  std::set<std::pair<std::string, std::string>> drawn;
  for (const auto& [from, to] : arrows_of(source_dir() / "docs/architecture.dot")) {
    EXPECT_TRUE(to == "labs" || ruled.contains({from, to})) << from << " -> " << to << " is no rule";
    drawn.emplace(from, to);
  }
  ASSERT_FALSE(drawn.empty());
  for (std::size_t before = 0; before != drawn.size();) {
    before = drawn.size();
    const auto known = drawn;
    for (const auto& [from, through] : known)
      for (const auto& [begin, to] : known)
        if (begin == through) drawn.emplace(from, to);
  }
  for (const auto& [from, to] : ruled) {
    EXPECT_TRUE(drawn.contains({from, to})) << "no way leads from " << from << " to " << to;
    EXPECT_FALSE(drawn.contains({to, from})) << from << " and " << to << " build on one another";
  }
}

}  // namespace
}  // namespace miniqat::house_test
