#include "training/run/made_by.h"

#include <algorithm>
#include <filesystem>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <utility>

#include "core/files/files.h"
#include "core/kernels/instruction_set.h"
#include "core/platform/system.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/quote.h"
#include "core/threads/parallel.h"

namespace miniqat::training {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Words = std::vector<std::string>;

std::optional<Words>& command_line() {
  static std::optional<Words> words;
  return words;
}

/// "net.onnx", or "--model=net.onnx", where there is such a file or folder.
bool leads_from_here(const std::string& word) {
  const fs::path path = word.starts_with("--") ? word.substr(word.find('=') + 1) : word;
  return path.is_relative() && is_there(path);
}

Json command_to_json(const RunDirectory& run) {
  if (!command_line()) return {{"command", nullptr}};
  const Words& words = *command_line();
  std::string text = "miniqat";
  for (const std::string& word : words) text += " " + shell_quoted(word);
  Json json = {{"command", text}};
  // Without --out the run has a relative path that is not in the line.
  if (run.path().is_relative() || std::ranges::any_of(words, leads_from_here))
    json["directory"] = fs::current_path().string();
  return json;
}

Json earlier_commands(const RunDirectory& run) {
  try {
    const Json commands = json_if_there(run.commands());
    if (commands.is_array()) return commands;
  } catch (const Error&) {
    // It gives way to a new one.
  }
  return Json::array();
}

constexpr const char* kCompiler =
#ifdef __clang__
    "clang " __clang_version__;
#else
    "GCC " __VERSION__;
#endif

std::string& program_commit() {
  static std::string commit;
  return commit;
}

}  // namespace

void set_command_line(std::vector<std::string> words) { command_line() = std::move(words); }

void record_command(const RunDirectory& run) {
  Json commands = earlier_commands(run);
  commands.push_back(command_to_json(run));
  write_json(run.commands(), commands);
}

std::string text_of_commands(const Json& commands) {
  std::string line, before;
  for (const Json& one : commands) {
    const std::string text =
        one["command"].is_null() ? "(from Python or another program)" : one["command"].get<std::string>();
    if (text != before) line += (line.empty() ? "" : " && ") + text;
    before = text;
  }
  return line;
}

void set_program_commit(std::string commit) { program_commit() = std::move(commit); }

nlohmann::ordered_json machine_to_json() {
  const dnnl_version_t* onednn = dnnl_version();
  return {{"program", "miniqat " MINIQAT_VERSION},
          {"commit", program_commit()},
          {"cpu", cpu_name()},
          {"cores", available_cores()},
          {"instruction_set", std::string(name_of(isa_level()))},
          {"onednn", concat(onednn->major, ".", onednn->minor, ".", onednn->patch)},
          {"compiler", kCompiler}};
}

}  // namespace miniqat::training
