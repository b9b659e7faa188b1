#include "tests/cli/run_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "core/files/safetensors.h"
#include "tests/cli/program.h"

namespace miniqat::testing {

using Json = nlohmann::json;

Json json_of(const std::filesystem::path& path) { return Json::parse(bytes_of(path)); }

Json report_data(const std::filesystem::path& page) {
  const std::string html = bytes_of(page), begin = "id=\"data\">";
  const std::size_t from = html.find(begin) + begin.size();
  return Json::parse(html.substr(from, html.find("</script>", from) - from));
}

std::vector<Json> lines_of(const std::filesystem::path& path) {
  std::vector<Json> lines;
  std::istringstream text(bytes_of(path));
  for (std::string line; std::getline(text, line);) lines.push_back(Json::parse(line));
  return lines;
}

std::map<std::int64_t, double> losses_of(const std::filesystem::path& run) {
  std::map<std::int64_t, double> losses;
  for (const Json& line : lines_of(run / "metrics.jsonl"))
    if (line.contains("loss")) {
      EXPECT_TRUE(losses.emplace(line["step"], line["loss"]).second) << "twice in metrics.jsonl: " << line;
    }
  return losses;
}

std::int64_t step_of(const std::filesystem::path& run) {
  return *read_safetensors(run / "checkpoint.safetensors").tensors.at("session:step").data<std::int64_t>();
}

RunFiles files_of(const std::filesystem::path& run) {
  RunFiles files;
  for (const auto& entry : std::filesystem::directory_iterator(run))
    files.names.push_back(entry.path().filename().string());
  std::ranges::sort(files.names);
  files.checkpoint = bytes_of(run / "checkpoint.safetensors");
  files.metrics = lines_of(run / "metrics.jsonl");
  for (Json& line : files.metrics) line.erase("images_per_second");
  files.summary = json_of(run / "summary.json");
  for (const char* time : {"images_per_second", "seconds", "peak_memory_mb"}) files.summary.erase(time);
  return files;
}

}  // namespace miniqat::testing
