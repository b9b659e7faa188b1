#include "cli/metrics_log.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "core/files.h"
#include "core/json_text.h"

namespace miniqat::cli {
namespace {

using Json = nlohmann::ordered_json;

/// The step that a line is about; nothing for what is no line of ours.
std::optional<std::int64_t> step_of(const Json& line) {
  if (!line.is_object() || !line.contains("step") || !line["step"].is_number_integer()) return {};
  return line["step"].get<std::int64_t>();
}

}  // namespace

bool MetricsLog::exists() const {
  std::error_code failure;
  return std::filesystem::exists(path_, failure);
}

void MetricsLog::append(const Json& line) const { append_to_file(path_, dump_on_one_line(line) + "\n"); }

void MetricsLog::sync() const { sync_file(path_); }

void MetricsLog::forget_after(std::int64_t step) const {
  if (!exists()) return;
  const std::string text = read_file(path_);
  std::istringstream lines(text);
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    const std::optional<std::int64_t> own = step_of(Json::parse(line, nullptr, false));
    if (own && *own <= step) kept += line + "\n";
  }
  if (kept != text) write_file_atomically(path_, kept);
}

Json MetricsLog::find(std::int64_t step, const std::string& key) const {
  Json found;
  if (!exists()) return found;
  std::istringstream lines(read_file(path_));
  for (std::string line; std::getline(lines, line);) {
    Json json = Json::parse(line, nullptr, false);
    if (step_of(json) == step && json.contains(key) && json[key].is_number()) found = std::move(json);
  }
  return found;
}

std::string MetricsLog::failure_after(std::int64_t step) const {
  std::string found;
  if (!exists()) return found;
  std::istringstream lines(read_file(path_));
  for (std::string line; std::getline(lines, line);) {
    const Json json = Json::parse(line, nullptr, false);
    const std::optional<std::int64_t> own = step_of(json);
    if (own && *own > step && json.contains("failure") && json["failure"].is_string())
      found = json["failure"].get<std::string>();
  }
  return found;
}

}  // namespace miniqat::cli
