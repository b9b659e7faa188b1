#include "tests/exporters/c/c_project.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>

#include "core/files/files.h"
#include "exporters/c/source.h"

namespace miniqat::testing {
namespace {

using integer::Model;

std::string main_of(const std::string& prefix, const Model& model) {
  const std::string in = std::to_string(model.tensor(model.input).shape.elements());
  const std::string out = std::to_string(model.tensor(model.output).shape.elements());
  return "  if (strcmp(argv[1], \"" + prefix + "\") == 0) {\n    static uint8_t x[" + in + "], y[" + out +
         "];\n    FILE *results, *classes;\n    if (argc == 2) return " + prefix +
         "_self_test();\n    results = fopen(argv[2], \"wb\");\n    classes = fopen(argv[3], \"wb\");\n" +
         "    while (fread(x, 1, sizeof x, stdin) == sizeof x) {\n      " +
         (model.task.empty() ? "fputc(" + prefix + "_run(x, y), classes)" : prefix + "_run(x, y)") +
         ";\n      fwrite(y, 1, sizeof y, results);\n    }\n    fclose(results);\n" +
         "    fclose(classes);\n    return 0;\n  }\n";
}

}  // namespace

void CProject::add(const std::string& prefix, const Model& model, const Tensor& tests,
                   const std::optional<integer::Grid>& bytes) {
  const exporters::CSource c = exporters::c_source(model, prefix, prefix + ".h", tests, bytes);
  directory_.write(prefix + ".h", c.header);
  directory_.write(prefix + ".c", c.source);
  models_.emplace(prefix, model);
}

void CProject::edit(const std::string& prefix, const std::string& from, const std::string& to) {
  std::string source = read_file(path(prefix + ".c"));
  const std::size_t at = source.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  directory_.write(prefix + ".c", source.replace(at, from.size(), to));
}

bool CProject::compile(const std::string& flags) {
  std::string main = "#include <stdio.h>\n#include <string.h>\n", sources = "main.c";
  for (const auto& [prefix, model] : models_) main += "#include \"" + prefix + ".h\"\n";
  main += "int main(int argc, char **argv) {\n  if (argc < 2) return 99;\n";
  for (const auto& [prefix, model] : models_) {
    main += main_of(prefix, model);
    sources += " " + prefix + ".c";
  }
  directory_.write("main.c", main + "  return 98;\n}\n");
  return run("cc " + flags + " -o program " + sources) == 0;
}

std::pair<std::string, std::string> CProject::outputs(const std::string& prefix, const Tensor& images) {
  const auto bytes = images.values<std::uint8_t>();
  directory_.write("in", std::string(bytes.begin(), bytes.end()));
  EXPECT_EQ(run("./program " + prefix + " out classes < in"), 0);
  return {read_file(path("out")), read_file(path("classes"))};
}

int CProject::run(const std::string& command) {
  const int status = std::system(("cd '" + directory_.path().string() + "' && " + command).c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace miniqat::testing
