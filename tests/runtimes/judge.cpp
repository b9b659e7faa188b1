#include "tests/runtimes/judge.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>

#include "core/files/files.h"
#include "core/text/error.h"
#include "tests/source_dir.h"
#include "tests/temp_dir.h"

namespace miniqat::testing {
namespace {

const std::filesystem::path kScripts = source_dir() / "runtimes";

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
          .outputs = {},
          .optimized = {}};
}

}  // namespace

std::string why_no_node() {
  static const std::string why = [] {
    const TempDir directory;
    const Verdict version = node(directory, {"--print", "parseInt(process.versions.node)"});
    if (version.status != 0) return std::string("no node");
    if (std::atoi(version.out.c_str()) < 18) return "Node 18 or later is needed, this is " + version.out;
    return std::string();
  }();
  return why;
}

std::string why_no_runtimes() {
  static const std::string why = [] {
    if (!why_no_node().empty()) return why_no_node();
    const std::filesystem::path installed = kScripts / "node_modules/.installed-lock.json";
    if (!std::filesystem::exists(installed)) return std::string("no packages in runtimes/node_modules");
    if (read_file(installed) != read_file(kScripts / "package-lock.json"))
      return std::string("runtimes/node_modules has other packages than package-lock.json");
    return std::string();
  }();
  return why;
}

Verdict judge(const std::string& script, const std::vector<Case>& cases, const std::vector<std::string>& arguments,
              bool keep_optimized) {
  const TempDir directory, optimized;
  std::string list;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Tensor& inputs = cases[i].images;
    const auto model = directory.write(concat("model", i), cases[i].model);
    const auto images = directory.write(concat("images", i), {static_cast<const char*>(inputs.raw()), inputs.bytes()});
    list += concat(model.string(), " ", images.string(), " ", cases[i].images.shape()[0], " ",
                   (directory.path() / concat("outputs", i)).string(), "\n");
  }
  std::vector<std::string> words = {kScripts / script, "--list", directory.write("list", list)};
  words.insert(words.end(), arguments.begin(), arguments.end());
  if (keep_optimized) words.insert(words.end(), {"--optimized", optimized.path()});
  Verdict verdict = node(directory, words);
  for (std::size_t i = 0; verdict.status == 0 && i < cases.size(); ++i) {
    verdict.outputs.push_back(read_file(directory.path() / concat("outputs", i)));
    if (keep_optimized) verdict.optimized.push_back(read_file(optimized.path() / concat("model", i)));
  }
  return verdict;
}

void expect_complaint(const Verdict& verdict, const std::string& part) {
  EXPECT_EQ(verdict.status, 1);
  EXPECT_EQ(std::ranges::count(verdict.err, '\n'), 1) << verdict.err;
  EXPECT_NE(verdict.err.find(part), std::string::npos) << verdict.err;
}

}  // namespace miniqat::testing
