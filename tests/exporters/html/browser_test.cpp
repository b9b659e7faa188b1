// A page in a browser: headless Chromium computes what the reference engine does, and loads nothing.

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>

#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "exporters/html/base64.h"
#include "exporters/html/html.h"
#include "integer/reference/engine.h"
#include "tests/exporters/html/page_models.h"
#include "tests/fewer_cases.h"
#include "tests/integer/random_model.h"
#include "tests/temp_dir.h"

namespace miniqat::exporters::browser_test {
namespace {

namespace fs = std::filesystem;

bool has_chromium() { return std::system("command -v chromium > /dev/null") == 0; }

/// What the browser made of a page.
struct Visit {
  int status = -1;
  /// The document at the end, as HTML.
  std::string document;
  /// The lines of the console.
  std::string console;
};

Visit visit(const std::string& html) {
  const testing::TempDir place;
  const fs::path page = place.write("page.html", html), out = place.path() / "out", err = place.path() / "err";
  // The flags keep the browser itself off the network; the page is kept off it by its own policy.
  const std::string command =
      concat("timeout 120 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run ",
             "--disable-background-networking --disable-component-update --disable-sync --disable-breakpad ",
             "--host-resolver-rules='MAP * ~NOTFOUND' --user-data-dir=", (place.path() / "profile").string(),
             " --window-size=1600,1000 --enable-logging=stderr --virtual-time-budget=3000000 --dump-dom file://",
             page.string(), " > ", out.string(), " 2> ", err.string(), " < /dev/null");
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

/// A page with pictures to run and the script that does so, and uses the page.
std::string page_with_judge(const HtmlPage& page, const Tensor& pictures) {
  std::string html = exporters::html(page);
  const std::string bytes(static_cast<const char*>(pictures.raw()), pictures.bytes());
  const std::string script = read_file(fs::path(MINIQAT_SOURCE_DIR) / "tests/exporters/html/browser.js");
  html.insert(html.rfind("</body>"), concat("<script type=\"text/plain\" id=\"pictures\">", base64(bytes),
                                            "</script><pre id=\"found\"></pre><script>", script, "</script>\n"));
  return html;
}

nlohmann::json found_in(const Visit& visit) {
  const std::string begin = "<pre id=\"found\">";
  const std::size_t from = visit.document.rfind(begin);
  if (from == std::string::npos) return {};
  const std::size_t start = from + begin.size();
  return nlohmann::json::parse(visit.document.substr(start, visit.document.find("</pre>", start) - start), nullptr,
                               false);
}

HtmlPage two_models(Random& random) {
  HtmlPage page = testing::one_page(testing::small_digit_model(3));
  page.models.push_back({.model = testing::small_digit_model(4), .label = "other", .bytes = page.models[0].bytes});
  page.models[1].bytes = page.models[1].model.tensor(page.models[1].model.input).grid;
  page.pictures = testing::random_images(random, page.models[0].model, 3);
  page.picture_names = {"a", "b", "c"};
  return page;
}

TEST(Browser, ComputesTheIntegersOfTheReferenceAndLoadsNothing) {
  if (!has_chromium()) {
    if (std::getenv("CI") != nullptr) FAIL() << "no chromium; scripts/install-deps --ci";
    GTEST_SKIP() << "no chromium; scripts/install-deps --ci installs it";
  }
  Random random(8);
  const HtmlPage page = two_models(random);
  const Tensor pictures = testing::random_images(random, page.models[0].model, testing::fewer(1000));
  const Visit seen = visit(page_with_judge(page, pictures));
  ASSERT_EQ(seen.status, 0) << seen.console;
  EXPECT_EQ(seen.console, "");
  const nlohmann::json found = found_in(seen);
  ASSERT_TRUE(found.is_object()) << seen.document.substr(seen.document.size() -
                                                         std::min<std::size_t>(seen.document.size(), 300));
  EXPECT_EQ(found["complaints"], nlohmann::json::array());
  const integer::Model& model = page.models[0].model;
  std::string expected;
  const std::vector<Tensor> tensors = integer::reference::run(model, pictures);
  for (const std::uint8_t byte : tensors[model.output].values<std::uint8_t>()) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    expected += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  const std::string outputs = found["outputs"];
  EXPECT_EQ(outputs.size(), expected.size());
  const auto [wrong, right] = std::ranges::mismatch(outputs, expected);
  EXPECT_TRUE(wrong == outputs.end()) << "first at " << wrong - outputs.begin();

  // The policy refuses a request, and the console shows it.
  std::string curious = exporters::html(page);
  curious.insert(curious.rfind("</body>"), "<img src=\"http://127.0.0.1:9/picture.png\">");
  EXPECT_NE(visit(curious).console.find("Content Security Policy"), std::string::npos);
}

}  // namespace
}  // namespace miniqat::exporters::browser_test
