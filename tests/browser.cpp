#include "tests/browser.h"

#include <sys/wait.h>

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "core/files.h"
#include "tests/temp_dir.h"

namespace miniqat::testing {

bool has_chromium() { return std::system("command -v chromium > /dev/null") == 0; }

Visit visit(const std::string& html, int width, int height) {
  namespace fs = std::filesystem;
  const TempDir place;
  const fs::path page = place.write("page.html", html), out = place.path() / "out", err = place.path() / "err";
  // The flags keep the browser itself off the network; the page is kept off it by its own policy.
  const std::string command =
      concat("timeout 120 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run ",
             "--disable-background-networking --disable-component-update --disable-sync --disable-breakpad ",
             "--host-resolver-rules='MAP * ~NOTFOUND' --user-data-dir=", (place.path() / "profile").string(),
             " --window-size=", width, ",", height,
             " --enable-logging=stderr --virtual-time-budget=3000000 --dump-dom file://", page.string(), " > ",
             out.string(), " 2> ", err.string(), " < /dev/null");
  const int status = std::system(command.c_str());
  Visit visit{.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
              .document = read_file(out),
              .console = {}};
  const std::string log = read_file(err);
  for (std::size_t at = 0; at < log.size();) {
    const std::size_t end = std::min(log.find('\n', at), log.size());
    const std::string line = log.substr(at, end - at);
    if (line.find(":CONSOLE") != line.npos) visit.console += line + "\n";
    at = end + 1;
  }
  return visit;
}

nlohmann::json found_in(const Visit& visit) {
  const std::string begin = "<pre id=\"found\">";
  const std::size_t from = visit.document.rfind(begin);
  if (from == std::string::npos) return {};
  const std::size_t start = from + begin.size();
  return nlohmann::json::parse(visit.document.substr(start, visit.document.find("</pre>", start) - start), nullptr,
                               false);
}

}  // namespace miniqat::testing
