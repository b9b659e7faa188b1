// The parts of which pages are made.

#include "core/text/page.h"

#include <gtest/gtest.h>

#include "core/text/json.h"

namespace miniqat::page_test {
namespace {

TEST(Base64, IsThatOfRfc4648) {
  // The examples of its section 10.
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64("\xff\xfe\xfb"), "//77");
}

TEST(Page, IsFilledOnce) {
  const auto part = [](std::string_view name) { return "<" + std::string(name) + "@x@>"; };
  EXPECT_EQ(fill_page("a @one@ b@two@", part), "a <one@x@> b<two@x@>") << "marks in a part stay";
  EXPECT_EQ(fill_page("nothing", part), "nothing");
}

TEST(Page, KeepsTextsFromBeingMarkup) {
  EXPECT_EQ(html_text("a <b> & c"), "a &lt;b> &amp; c");
  const nlohmann::ordered_json json = {{"key", "</script><!--"}};
  const std::string text = script_json(json);
  EXPECT_EQ(text.find('<'), std::string::npos);
  EXPECT_EQ(nlohmann::ordered_json::parse(text), json);
}

}  // namespace
}  // namespace miniqat::page_test
