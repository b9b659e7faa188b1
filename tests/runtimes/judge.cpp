#include "tests/runtimes/judge.h"

#include <sys/wait.h>

#include <cstdlib>

#include "core/error.h"
#include "core/files.h"
#include "tests/temp_dir.h"

namespace miniqat::testing {
namespace {

const std::filesystem::path kScripts = std::filesystem::path(MINIQAT_SOURCE_DIR) / "tests/runtimes";

std::string quoted(const std::string& word) {
  if (word.find('\'') != std::string::npos) fail("a path with a quote in it: ", word);
  return "'" + word + "'";
}

/// Runs node with its output in files of `directory`.
Verdict node(const TempDir& directory, const std::vector<std::string>& words) {
  const std::filesystem::path out = directory.write("out", ""), err = directory.write("err", "");
  std::string command = "node";
  for (const std::string& word : words) command += " " + quoted(word);
  const int status = std::system((command + " > " + quoted(out) + " 2> " + quoted(err) + " < /dev/null").c_str());
  return {.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          .out = read_file(out),
          .err = read_file(err),
          .outputs = {}};
}

}  // namespace

std::string why_no_runtimes() {
  static const std::string why = [] {
    const TempDir directory;
    const Verdict version = node(directory, {"--print", "parseInt(process.versions.node)"});
    if (version.status != 0) return std::string("no node");
    if (std::atoi(version.out.c_str()) < 18) return "Node 18 or later is needed, this is " + version.out;
    if (!std::filesystem::exists(kScripts / "node_modules/.installed-lock.json"))
      return std::string("no packages in tests/runtimes/node_modules");
    return std::string();
  }();
  return why;
}

Verdict judge(const std::string& script, const std::filesystem::path& model, const Tensor& images,
              const std::vector<std::string>& arguments) {
  const TempDir directory;
  const auto values = images.values<std::uint8_t>();
  const auto input = directory.write("images", {reinterpret_cast<const char*>(values.data()), values.size()});
  const auto output = directory.path() / "outputs";
  std::vector<std::string> words = {kScripts / script, model, input, std::to_string(images.shape()[0]), output};
  words.insert(words.end(), arguments.begin(), arguments.end());
  Verdict verdict = node(directory, words);
  if (verdict.status == 0) verdict.outputs = read_file(output);
  return verdict;
}

}  // namespace miniqat::testing
