#include "tests/browser.h"

#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "core/files/files.h"
#include "core/text/error.h"
#include "core/text/page.h"
#include "tests/source_dir.h"
#include "tests/temp_dir.h"

namespace miniqat::testing {

namespace fs = std::filesystem;

namespace {

bool is_firefox() {
  const char* browser = std::getenv("MINIQAT_TEST_BROWSER");
  return browser != nullptr && std::string_view(browser) == "firefox";
}

/// Prints the document, and the console's lines on stderr behind ":CONSOLE".
std::string browser_command(const fs::path& page, const fs::path& profile, int width, int height) {
  if (is_firefox())
    return concat("/usr/bin/python3 ", (source_dir() / "tests/firefox.py").string(), " ", page.string(), " ", width,
                  " ", height);
  // The flags keep the browser itself off the network; the page is kept off it by its own policy.
  return concat("chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run ",
                "--disable-background-networking --disable-component-update --disable-sync --disable-breakpad ",
                "--host-resolver-rules='MAP * ~NOTFOUND' --user-data-dir=", profile.string(), " --window-size=", width,
                ",", height, " --enable-logging=stderr --virtual-time-budget=3000000 --dump-dom file://",
                page.string());
}

}  // namespace

bool has_browser() {
  return std::system(is_firefox() ? "command -v firefox-esr > /dev/null" : "command -v chromium > /dev/null") == 0;
}

Visit visit(const std::string& html, int width, int height) {
  const TempDir place;
  const fs::path page = place.write("page.html", html), out = place.path() / "out", err = place.path() / "err";
  const std::string command = concat("timeout 120 ", browser_command(page, place.path() / "profile", width, height),
                                     " > ", out.string(), " 2> ", err.string(), " < /dev/null");
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

bool policy_refused(const Visit& visit) {
  // Chromium's words and Firefox's.
  return visit.console.find("Content Security Policy") != std::string::npos ||
         visit.console.find("Content-Security-Policy") != std::string::npos;
}

nlohmann::json found_in(const Visit& visit) {
  const std::string begin = "<pre id=\"found\">";
  const std::size_t from = visit.document.rfind(begin);
  if (from == std::string::npos) return {};
  const std::size_t start = from + begin.size();
  return nlohmann::json::parse(visit.document.substr(start, visit.document.find("</pre>", start) - start), nullptr,
                               false);
}

nlohmann::json look_at_layout(std::string html, const std::string& steps) {
  html.insert(html.rfind("</body>"), concat("<script>", steps, "</script>\n"));
  const std::string script = read_file(source_dir() / "tests/layout.js");
  const Visit seen = visit(concat("<!DOCTYPE html><html><body><script type=\"text/plain\" id=\"page\">", base64(html),
                                  "</script><pre id=\"found\"></pre><script>", script, "</script></body></html>"));
  EXPECT_EQ(seen.status, 0) << seen.console;
  EXPECT_EQ(seen.console, "");
  return found_in(seen);
}

}  // namespace miniqat::testing
