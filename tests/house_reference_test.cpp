// The references specify, and so do the plain loops of integers: each reads by itself, and no fast path goes through
// one. (That a reference goes through no fast path is a matter of its few headers.)

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/house_files.h"
#include "tests/source_dir.h"

namespace miniqat::house_test {
namespace {

namespace fs = std::filesystem;

bool is_reference(const fs::path& file) { return file.parent_path().filename() == "reference"; }

/// The top folders that have references.
std::set<std::string> rooms_with_references() {
  std::set<std::string> rooms;
  for (const std::string& top : top_entries())
    if (!top.starts_with('.') && fs::is_directory(source_dir() / top / "reference")) rooms.insert(top);
  return rooms;
}

TEST(House, ASpecificationReadsByItself) {
  constexpr std::size_t kMostHeaders = 5, kSmall = 200;
  std::size_t references = 0;
  for (const std::string& room : rooms_with_references())
    for (const fs::path& file : sources(room)) {
      if (!is_reference(file) || file.extension() != ".h") continue;
      ++references;
      const std::set<fs::path> headers = headers_behind(file);
      EXPECT_LE(headers.size(), kMostHeaders) << file;
      for (const fs::path& header : headers) EXPECT_LE(lines_of(header).size(), kSmall) << header << " for " << file;
    }
  EXPECT_GT(references, 12u);
}

/// A header of integer/ops holds the plain loops of its operations: they take spans, shapes and plain structs, and can
/// be read without the rest.
TEST(House, SpecificationsOfIntegersReadByThemselves) {
  constexpr std::size_t kMostHeaders = 5;
  int headers = 0;
  for (const fs::path& file : sources("integer/ops")) {
    if (file.extension() != ".h" || file.stem() == "operation_check") continue;
    EXPECT_LE(headers_behind(file).size(), kMostHeaders) << file;
    ++headers;
  }
  EXPECT_GT(headers, 7);
}

/// The fast loops of an operation lie beside its specification and call nothing of it. A layer with more padding than
/// they have room for is left to the plain loops.
TEST(House, FastIntegersDoNotCallTheirSpecification) {
  static const std::regex specification(
      R"(\b(apply|requantize|round_shift|place|less_zero_point|moved_place|stretched_place|for_each_tap)\()");
  // What else a layer's plain loop calls; its rules in layer.cpp may ask the same.
  static const std::regex of_layers(R"(\.(weight_units|weight_shift|weight_zero_point|multiplier)\()");
  int calls = 0;
  for (const char* folder : {"integer/ops", "integer/kernels"})
    for (const fs::path& file : sources(folder)) {
      const bool in_ops = folder == std::string("integer/ops");
      const bool defines_it = in_ops && file.extension() == ".h" && !file.stem().string().ends_with("_loops");
      if (defines_it) continue;
      for (const std::string& line : lines_of(file)) {
        const std::string code = line.substr(0, line.find("//"));
        EXPECT_FALSE(!in_ops && std::regex_search(code, of_layers)) << file << " must not have " << line;
        if (!std::regex_search(code, specification) || code.find("inline void requantize(V* sums") != code.npos)
          continue;
        EXPECT_EQ(file.filename(), "layer.cpp") << file << " must not have " << line;
        ++calls;
      }
    }
  EXPECT_EQ(calls, 1);
}

/// The lines that use a reference elsewhere than in the reference backend: in a function whose name has "reference_",
/// or in a class Reference... (A rule of an elementwise op names what specifies it: `using Reference = ...`.)
std::vector<std::size_t> uses_of_references(const std::vector<std::string>& lines) {
  static const std::regex use(R"((\b|::)reference::|::Reference\b)"), dispatch(R"(\breference_\w+(<\w+>)?\()"),
      named(R"(^ *using Reference = )"), of_class(R"(^(class|struct) Reference)");
  std::vector<bool> allowed(lines.size(), false);
  for (const FunctionLines& function : functions_of(lines)) {
    bool dispatches = false;
    for (std::size_t line = function.begin; line <= function.brace; ++line)
      dispatches = dispatches || std::regex_search(lines[line], dispatch);
    for (std::size_t line = function.begin; dispatches && line < function.end; ++line) allowed[line] = true;
  }
  std::vector<std::size_t> found;
  bool in_class = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string code = lines[i].substr(0, lines[i].find("//"));
    if (code.starts_with("class ") || code.starts_with("struct ")) in_class = std::regex_search(code, of_class);
    if (code.starts_with("}")) in_class = false;
    // (Regular expressions take their time.)
    if (allowed[i] || in_class || code.find("eference") == code.npos || std::regex_search(code, named)) continue;
    if (std::regex_search(code, use)) found.push_back(i);
  }
  return found;
}

TEST(House, UsesOfReferencesAreSeen) {
  const std::vector<std::string> lines = {"  using Reference = reference::Rule;",
                                          "void reference_forward(int a) {",
                                          "  reference::f(a);  // reference::f",
                                          "}",
                                          "std::vector<reference::Sum> reference_sums(int a,",
                                          "                                           int b) {",
                                          "  return reference::sums(a, b);",
                                          "}",
                                          "void forward(int a) {",
                                          "  // reference::f",
                                          "  reference::f(a);",
                                          "  using Rule = typename Rules::Reference;",
                                          "}",
                                          "class ReferenceStep {",
                                          "  int run() { return reference::f(); }",
                                          "};",
                                          "class Step {",
                                          "  int run() { return quantize::reference::f(); }",
                                          "};"};
  EXPECT_EQ(uses_of_references(lines), (std::vector<std::size_t>{10, 11, 17}));
}

TEST(House, NoFastPathGoesThroughAReference) {
  std::size_t dispatching = 0;
  for (const std::string& room : rooms_with_references())
    for (const fs::path& file : sources(room)) {
      if (is_reference(file)) continue;
      const std::vector<std::string> lines = lines_of(file);
      const bool includes = std::ranges::any_of(lines, [](const std::string& line) {
        return line.starts_with("#include \"") && is_reference(line.substr(std::string("#include \"").size()));
      });
      dispatching += includes ? 1 : 0;
      for (const std::size_t i : uses_of_references(lines))
        ADD_FAILURE() << file << ":" << i + 1 << " is not in the reference backend: " << lines[i];
    }
  EXPECT_GT(dispatching, 10u);
}

}  // namespace
}  // namespace miniqat::house_test
