// A page in a browser: headless Chromium computes what the reference engine does, and loads nothing.

#include "tests/browser.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/files/files.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/page.h"
#include "exporters/html/html.h"
#include "integer/reference/engine.h"
#include "tests/exporters/html/page_models.h"
#include "tests/fewer_cases.h"
#include "tests/integer/random_model.h"
#include "tests/source_dir.h"

namespace miniqat::exporters::browser_test {
namespace {

namespace fs = std::filesystem;

/// A page with pictures to run and the script that does so, and uses the page.
std::string page_with_judge(const HtmlPage& page, const Tensor& pictures) {
  std::string html = exporters::html(page);
  const std::string bytes(static_cast<const char*>(pictures.raw()), pictures.bytes());
  const std::string script = read_file(source_dir() / "tests/exporters/html/browser.js");
  html.insert(html.rfind("</body>"), concat("<script type=\"text/plain\" id=\"pictures\">", base64(bytes),
                                            "</script><pre id=\"found\"></pre><script>", script, "</script>\n"));
  return html;
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
  MINIQAT_NEED_BROWSER();
  Random random(8);
  const HtmlPage page = two_models(random);
  const Tensor pictures = testing::random_images(random, page.models[0].model, testing::fewer(1000, 5));
  const testing::Visit seen = testing::visit(page_with_judge(page, pictures));
  ASSERT_EQ(seen.status, 0) << seen.console;
  EXPECT_EQ(seen.console, "");
  const nlohmann::json found = testing::found_in(seen);
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

  // The same in a narrow window, with few pictures.
  const Tensor few = testing::random_images(random, page.models[0].model, 1);
  const nlohmann::json small = testing::found_in(testing::visit(page_with_judge(page, few), 500, 900));
  EXPECT_EQ(small.value("complaints", nlohmann::json()), nlohmann::json::array());
  EXPECT_EQ(small.value("narrow", 0), 1);

  // The policy refuses a request, and the console shows it.
  std::string curious = exporters::html(page);
  curious.insert(curious.rfind("</body>"), "<img src=\"http://127.0.0.1:9/picture.png\">");
  EXPECT_TRUE(testing::policy_refused(testing::visit(curious)));
}

TEST(Browser, NothingIsCutOffOnAPhoneATabletOrAScreen) {
  MINIQAT_NEED_BROWSER();
  Random random(9);
  HtmlPage page = two_models(random);
  page.title = "A network with a title that takes more than one line of a phone";
  page.models[1].label = "mobilenet_v2 W4A4-8";
  page.models[1].accuracy = 0.9638;
  integer::Model& model = page.models[0].model;
  model.operations[0].name = "features/denseblock1/denselayer2/conv1/Conv2D";
  model.class_names = {"a class whose name has several words",
                       "Donaudampfschifffahrtskapitaen",
                       "cat",
                       "dog",
                       "frog",
                       "horse",
                       "ship",
                       "truck",
                       "airplane",
                       "automobile"};
  const std::string steps = read_file(source_dir() / "tests/exporters/html/layout_steps.js");
  const nlohmann::json found = testing::look_at_layout(exporters::html(page), steps);
  EXPECT_EQ(found.value("complaints", nlohmann::json()), nlohmann::json::array());
  // Three widths: as it opens, four steps for each of seven cards, the other model, the list of keys.
  EXPECT_EQ(found.value("looks", 0), 3 * (1 + 4 * 7 + 2));
  EXPECT_GT(found.value("shades", 0), 10) << "the grid of a phone, the products";
}

}  // namespace
}  // namespace miniqat::exporters::browser_test
