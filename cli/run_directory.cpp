#include "cli/run_directory.h"

#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"

namespace miniqat::cli {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

/// Where `path` or, while that is missing, the nearest directory above it can have directories made in it. Only the
/// attempt tells: permissions say nothing to root, nor of file systems that can only be read.
void require_makeable(const fs::path& path) {
  std::error_code failure;
  fs::path place = path;
  while (!place.empty() && !fs::exists(fs::symlink_status(place, failure))) place = place.parent_path();
  std::string attempt = (place / ".miniqat.XXXXXX").string();
  if (::mkdtemp(attempt.data()) == nullptr) {
    const int code = errno;
    fail("cannot make the run directory ", path.string(), ": ", std::strerror(code));
  }
  ::rmdir(attempt.c_str());
}

}  // namespace

RunDirectory RunDirectory::fresh(const fs::path& path, const std::string& advice) {
  RunDirectory run(path);
  std::error_code failure;
  for (const fs::path& file : {run.config(), run.checkpoint(), run.summary(), run.metrics(), run.train_graph(),
                               run.eval_graph(), run.bits(), run.init_checkpoint()})
    if (fs::exists(file, failure))
      fail(path.string(), " holds a run already (", file.filename().string(), "): ", advice);
  require_makeable(path);
  return run;
}

void RunDirectory::make() const {
  std::error_code failure;
  fs::create_directories(path_, failure);
  if (failure) fail("cannot make the run directory ", path_.string(), ": ", failure.message());
  if (!fs::is_directory(path_, failure)) fail("the run directory ", path_.string(), " is a file");
}

RunDirectory RunDirectory::open(const fs::path& path) {
  RunDirectory run(path);
  std::error_code failure;
  if (!fs::exists(run.config(), failure)) fail(path.string(), " holds no run: there is no ", run.config().string());
  return run;
}

void RunDirectory::log(const Json& line) const {
  errno = 0;
  std::ofstream file(metrics(), std::ios::app);
  file << dump_on_one_line(line) << '\n';
  file.flush();
  const int code = errno;
  if (!file) fail("cannot write ", metrics().string(), ": ", std::strerror(code));
}

void RunDirectory::forget_metrics_after(std::int64_t step) const {
  std::error_code failure;
  if (!fs::exists(metrics(), failure)) return;
  std::istringstream lines(read_file(metrics()));
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    const Json json = Json::parse(line, nullptr, false);
    if (json.is_object() && json.contains("step") && json["step"].is_number_integer() && json["step"] <= step)
      kept += line + "\n";
  }
  write_file_atomically(metrics(), kept);
}

fs::path checkpoint_file(const fs::path& path) {
  std::error_code failure;
  return fs::is_directory(path, failure) ? RunDirectory::open(path).checkpoint() : path;
}

Json read_json(const fs::path& path) {
  try {
    return parse_json(read_file(path));
  } catch (const Error& error) {
    const std::string text = error.what();
    const bool named = text.find(path.string()) != std::string::npos;
    fail(named ? "" : path.string() + ": ", text);
  }
}

void write_json(const fs::path& path, const Json& json) {
  write_file_atomically(path, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace miniqat::cli
