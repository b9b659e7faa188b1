#include "tests/exporters/litert.h"

#include <sys/wait.h>

#include <cstdlib>

#include "core/error.h"
#include "core/files.h"
#include "tests/temp_dir.h"

namespace miniqat::testing {
namespace {

constexpr int kNotInstalled = 77;
constexpr int kNoSuchCommand = 127;

}  // namespace

std::optional<std::vector<std::string>> run_in_litert(const std::vector<LiteRtRun>& runs, const std::string& flags) {
  const TempDir directory;
  const auto path = [&](std::size_t i, const char* suffix) {
    return (directory.path() / (std::to_string(i) + suffix)).string();
  };
  std::string list;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto bytes = runs[i].images.values<std::uint8_t>();
    directory.write(std::to_string(i) + ".tflite", runs[i].model);
    directory.write(std::to_string(i) + ".in", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    list += concat(path(i, ".tflite"), " ", path(i, ".in"), " ", runs[i].images.shape()[0], " ", path(i, ".out"), "\n");
  }
  const std::string errors = (directory.path() / "errors").string();
  const std::string command =
      concat("node '", MINIQAT_SOURCE_DIR, "/tests/runtimes/litert.mjs' --list '",
             directory.write("list", list).string(), "' ", flags, " > /dev/null 2> '", errors, "'");
  const int status = std::system(command.c_str());
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (code == kNotInstalled || code == kNoSuchCommand) return std::nullopt;
  if (code != 0) fail("LiteRT: ", read_file(errors));
  std::vector<std::string> outputs;
  for (std::size_t i = 0; i < runs.size(); ++i) outputs.push_back(read_file(path(i, ".out")));
  return outputs;
}

}  // namespace miniqat::testing
